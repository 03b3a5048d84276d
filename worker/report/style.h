// The style sheet of a report: system fonts, a limited width, light and dark by the reader's
// preference. Text and lines have a contrast of at least 4.5 : 1 and 3 : 1 with the background in
// both schemes; runs differ in dashes too, not in colour alone.
#pragma once

namespace cistern::report {

inline constexpr char kReportStyle[] = R"CSS(
:root {
  color-scheme: light dark;
  --bg: #fff; --fg: #1b2026; --muted: #59636e; --rule: #dde2e8; --soft: #f4f6f8; --mark: #fff3cf;
  --bad: #9f2a10; --c0: #1463a3; --c1: #b04a0a; --c2: #2a7549; --c3: #7a3e9d; --c4: #7d6300;
  --c5: #a3205c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #14181d; --fg: #e3e7eb; --muted: #9ba6b2; --rule: #2e363f; --soft: #1c2229;
    --mark: #40370f; --bad: #ff9a83; --c0: #6cb2f0; --c1: #f0985e; --c2: #6fc28e; --c3: #c69be2;
    --c4: #d8bd50; --c5: #f08db7;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; max-width: 70rem; padding: 1.5rem 1rem 4rem; background: var(--bg);
  color: var(--fg); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1 { font-size: 1.55rem; font-weight: 600; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; font-weight: 600; margin: 0 0 .75rem; }
h3 { font-size: 1rem; font-weight: 600; margin: 1.5rem 0 .5rem; overflow-wrap: anywhere; }
section { border-top: 1px solid var(--rule); margin-top: 2.25rem; padding-top: 1.25rem; }
p { margin: .25rem 0 .75rem; max-width: 46rem; }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.note, .sub, figcaption, caption { color: var(--muted); }
.note { font-size: .9rem; }
.tiles { display: grid; gap: 1px; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr));
  margin: 1.25rem 0 0; background: var(--rule); border: 1px solid var(--rule); }
.tiles div { background: var(--bg); padding: .7rem .9rem; }
.tiles dt { color: var(--muted); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.25rem;
  margin: 1.25rem 0 0; font-size: .92rem; }
.facts dt { color: var(--muted); }
.facts dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.warnings { border-left: 3px solid var(--bad); margin: 1.25rem 0 0; padding: .1rem 0 .1rem 1rem;
  list-style: none; }
.warnings li { margin: .3rem 0; max-width: 50rem; }
.warnings b { color: var(--bad); font-weight: 600; }
.scroll { overflow-x: auto; margin: 0 0 1rem; }
table { border-collapse: collapse; font-size: .9rem; }
caption { text-align: left; padding-bottom: .4rem; }
th, td { text-align: left; padding: .32rem .9rem .32rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: baseline; }
.keep { white-space: nowrap; }
thead th { color: var(--muted); font-weight: 500; white-space: nowrap; }
thead th[title] { text-decoration: underline dotted; text-underline-offset: .25em; }
tbody th { font-weight: 500; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.differs th, tr.differs td { background: var(--mark); }
tr.differs th { padding-left: .5rem; }
.bar { display: inline-block; height: .6rem; background: var(--c0); vertical-align: baseline; }
.barcell { min-width: 7rem; width: 100%; }
.charts { display: grid; gap: 1rem 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
figure { margin: 0; min-width: 0; max-width: 34rem; }
figcaption { font-size: .9rem; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--muted); font: 11.5px system-ui, -apple-system, "Segoe UI", sans-serif; }
.mid { text-anchor: middle; } .end { text-anchor: end; }
.grid { stroke: var(--rule); } .axis, .tick { stroke: var(--muted); }
.reference { stroke: var(--muted); stroke-dasharray: 3 3; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .area { stroke-width: 1.2; }
.s0 { stroke: var(--c0); --own: var(--c0); }
.s1 { stroke: var(--c1); --own: var(--c1); stroke-dasharray: 7 3; }
.s2 { stroke: var(--c2); --own: var(--c2); stroke-dasharray: 2 3; }
.s3 { stroke: var(--c3); --own: var(--c3); stroke-dasharray: 9 3 2 3; }
.s4 { stroke: var(--c4); --own: var(--c4); stroke-dasharray: 4 2; }
.s5 { stroke: var(--c5); --own: var(--c5); stroke-dasharray: 1 2; }
.dot, .area { fill: var(--own); stroke-dasharray: none; } .area { fill-opacity: .22; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; font-size: .88rem; margin: .15rem 0; }
.legend span { display: inline-flex; align-items: center; gap: .4rem; overflow-wrap: anywhere; }
.sample { width: 22px; height: 10px; flex: none; }
.shares { display: flex; height: 1rem; margin: .3rem 0; max-width: 46rem; background: var(--soft); }
.shares i { background: var(--own); border-right: 2px solid var(--bg); }
details { margin: .75rem 0; } summary { cursor: pointer; color: var(--muted); }
footer { border-top: 1px solid var(--rule); color: var(--muted); font-size: .85rem;
  margin-top: 2.5rem; padding-top: .75rem; }
@media print { body { max-width: none; } section { break-inside: avoid-page; } }
)CSS";

}  // namespace cistern::report
