#!/usr/bin/env python3
"""Checks that programs and libraries are hardened as scripts/cmake/hardening.cmake promises, from their ELF headers.

    scripts/check_hardening.py FILE...

Prints one line for each fault, and exits with 1 if there is any. Needs no other program. scripts/package.sh checks what
it packs, and a test checks the programs of a build.
"""

import struct
import sys

ET_DYN = 3
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
PF_X, PF_W = 1, 2
DT_STRTAB, DT_STRSZ, DT_TEXTREL = 5, 10, 22
DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1 = 24, 30, 0x6FFFFFFB
DF_TEXTREL, DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 4, 8, 1, 0x08000000


class Elf:
    """The program headers, the dynamic section and the names of the dynamic symbols of a 64-bit little-endian ELF file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        self.type, = struct.unpack_from("<H", self.bytes, 16)
        at, = struct.unpack_from("<Q", self.bytes, 32)
        size, number = struct.unpack_from("<HH", self.bytes, 54)
        # (type, flags, offset, address, bytes in the file)
        self.segments = [struct.unpack_from("<IIQQQQ", self.bytes, at + i * size) for i in range(number)]
        self.segments = [(kind, flags, offset, address, held) for kind, flags, offset, address, _, held in self.segments]
        self.dynamic = {}
        for _, _, offset, _, held in self.of_kind(PT_DYNAMIC):
            for tag, value in struct.iter_unpack("<QQ", self.bytes[offset:offset + held // 16 * 16]):
                if tag == 0:
                    break
                self.dynamic.setdefault(tag, value)

    def of_kind(self, kind):
        return [segment for segment in self.segments if segment[0] == kind]

    def offset_of(self, address):
        for _, _, offset, begin, held in self.of_kind(PT_LOAD):
            if begin <= address < begin + held:
                return offset + address - begin
        raise ValueError(f"address {address:#x} is in no segment")

    def symbol_names(self):
        """The text that holds the names of dynamic symbols; names end with a zero byte."""
        if DT_STRTAB not in self.dynamic:
            return set()
        begin = self.offset_of(self.dynamic[DT_STRTAB])
        return set(self.bytes[begin:begin + self.dynamic[DT_STRSZ]].split(b"\0"))


def faults_of(path):
    """What is missing, as texts."""
    elf = Elf(path)
    flags, flags_1 = elf.dynamic.get(DT_FLAGS, 0), elf.dynamic.get(DT_FLAGS_1, 0)
    is_program = bool(elf.of_kind(PT_INTERP))
    if elf.type != ET_DYN or (is_program and not flags_1 & DF_1_PIE):
        yield "its addresses are fixed: it is not position-independent (-pie)"
    if not elf.of_kind(PT_GNU_RELRO):
        yield "its tables of addresses stay writable: there is no RELRO (-Wl,-z,relro)"
    if not (DT_BIND_NOW in elf.dynamic or flags & DF_BIND_NOW or flags_1 & DF_1_NOW):
        yield "symbols are bound when they are first used, so RELRO is partial (-Wl,-z,now)"
    stacks = elf.of_kind(PT_GNU_STACK)
    if not stacks or stacks[0][1] & PF_X:
        yield "its stack is executable (-Wl,-z,noexecstack)"
    if any(flags & PF_W and flags & PF_X for _, flags, _, _, _ in elf.of_kind(PT_LOAD)):
        yield "a segment is both writable and executable"
    if DT_TEXTREL in elf.dynamic or flags & DF_TEXTREL:
        yield "its code is relocated, and therefore writable at the start (-fPIC)"
    names = elf.symbol_names()
    if b"__stack_chk_fail" not in names:
        yield "no function guards its return address (-fstack-protector-strong)"
    if not any(name.startswith(b"__") and name.endswith(b"_chk") for name in names):
        yield "no call of libc is fortified (-D_FORTIFY_SOURCE)"


def main(paths):
    if not paths or paths[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if paths else 2
    failed = False
    for path in paths:
        try:
            for fault in faults_of(path):
                print(f"{path}: {fault}")
                failed = True
        except (OSError, ValueError, struct.error) as error:
            print(f"{path}: {error}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
