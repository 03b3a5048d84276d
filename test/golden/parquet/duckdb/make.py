"""Makes types.parquet and types.csv, which DuckDB writes of one table: python3 make.py, with duckdb.

The committed ones were written by DuckDB 2.0.1.
"""

import pathlib

import duckdb

FOLDER = pathlib.Path(__file__).parent
TABLE = """
    select (i % 3 = 0)::int as click, uuid as user, i * 37.5::double * interval '1 second' as stay, city, price, digest
    from (select i,
                 (md5((i % 7)::text)[1:8] || '-0000-4000-8000-' || md5((i % 7)::text)[1:12])::uuid as uuid,
                 case i % 2 when 0 then 'rome' else 'oslo' end::enum('rome', 'oslo') as city,
                 (i / 4)::decimal(30, 4) as price,
                 {digest} as digest
          from range(60) t(i))"""
for name, digest in (("parquet", "unhex(md5((i % 5)::text))"), ("csv", "md5((i % 5)::text)")):
    table = TABLE.format(digest=digest)
    duckdb.sql(f"copy ({table}) to '{FOLDER / 'types'}.{name}' (format {name})")
