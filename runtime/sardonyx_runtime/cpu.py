"""Which features of LLVM's names an x86-64 CPU has, by what its CPUID instruction says.

The bits are those of the Intel and AMD manuals (Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["FEATURES", "WORDS", "Requirement", "has_features", "missing_features", "requirements"]

# What ``sdx_cpu`` writes: eax, ebx, ecx, edx of eight leaves, then XCR0.
_LEAF = {0: 0, 1: 4, 7: 8, 71: 12, 13: 16, 0x80000000: 20, 0x80000001: 24, 0x80000008: 28}
_XCR0 = 32
WORDS = 33
_AVX, _AVX512, _AMX = 0x6, 0xE6, 0x60000  # register files that the operating system has to save


def _bits(leaf: int, register: str, names: str) -> dict[str, tuple[int, int, int]]:
    """Features of one register from a text of ``name=bit`` pairs: leaf, word, bit."""
    word = _LEAF[leaf] + "abcd".index(register)
    pairs = (pair.split("=") for pair in names.split())
    return {name: (leaf, word, int(bit)) for name, bit in pairs}


_FEATURES = {
    **_bits(
        1,
        "c",
        "sse3=0 pclmul=1 ssse3=9 fma=12 cx16=13 sse4.1=19 sse4.2=20 crc32=20 movbe=22 popcnt=23 aes=25 "
        "xsave=26 avx=28 f16c=29 rdrnd=30",
    ),
    **_bits(1, "d", "cx8=8 cmov=15 mmx=23 fxsr=24 sse=25 sse2=26"),
    **_bits(
        7,
        "b",
        "fsgsbase=0 sgx=2 bmi=3 avx2=5 bmi2=8 invpcid=10 rtm=11 avx512f=16 avx512dq=17 rdseed=18 adx=19 "
        "avx512ifma=21 clflushopt=23 clwb=24 avx512cd=28 sha=29 avx512bw=30 avx512vl=31",
    ),
    **_bits(
        7,
        "c",
        "avx512vbmi=1 pku=4 waitpkg=5 avx512vbmi2=6 shstk=7 gfni=8 vaes=9 vpclmulqdq=10 avx512vnni=11 "
        "avx512bitalg=12 avx512vpopcntdq=14 rdpid=22 kl=23 cldemote=25 movdiri=27 movdir64b=28 enqcmd=29",
    ),
    **_bits(
        7,
        "d",
        "uintr=5 avx512vp2intersect=8 serialize=14 tsxldtrk=16 pconfig=18 amx-bf16=22 avx512fp16=23 "
        "amx-tile=24 amx-int8=25",
    ),
    **_bits(
        71,
        "a",
        "sha512=0 sm3=1 sm4=2 raoint=3 avxvnni=4 avx512bf16=5 cmpccxadd=7 amx-fp16=21 hreset=22 avxifma=23",
    ),
    **_bits(71, "d", "avxvnniint8=4 avxneconvert=5 amx-complex=8 avxvnniint16=10 prefetchi=14 usermsr=15"),
    **_bits(13, "a", "xsaveopt=0 xsavec=1 xsaves=3"),
    **_bits(0x80000001, "c", "sahf=0 lzcnt=5 sse4a=6 prfchw=8 xop=11 lwp=15 fma4=16 tbm=21 mwaitx=29"),
    **_bits(0x80000001, "d", "64bit=29"),
    **_bits(0x80000008, "b", "clzero=0 rdpru=4 wbnoinvd=9"),
}


FEATURES = tuple(_FEATURES)  # the names that are known here


@dataclass(frozen=True)
class Requirement:
    """What has to hold of a word of ``sdx_cpu`` for features to be there: bits, or a least value."""

    word: int
    mask: int = 0
    least: int = 0


def requirements(features: Iterable[str]) -> list[Requirement]:
    """What `missing_features` looks at, for code that looks itself; none of what it knows nothing of."""
    masks: dict[int, int] = {}
    leaves: dict[int, int] = {}
    for name in features:
        if name in _FEATURES:
            leaf, word, bit = _FEATURES[name]
            masks[word] = masks.get(word, 0) | 1 << bit
            masks[_XCR0] = masks.get(_XCR0, 0) | _state_of(name)
            basic = 0 if leaf < 0x80000000 else 0x80000000
            leaves[basic] = max(leaves.get(basic, 0), 7 if leaf == 71 else leaf)
            if leaf == 71:
                leaves[7] = 1
    found = [Requirement(_LEAF[leaf], least=least) for leaf, least in leaves.items() if least]
    return found + [Requirement(word, mask) for word, mask in sorted(masks.items()) if mask]


def has_features(words: Sequence[int]) -> dict[str, bool]:
    """Every feature of the table, and whether the CPU with these words has it (and the system lets it)."""
    most = words[_LEAF[0]] & 0xFFFFFFFF
    extended = words[_LEAF[0x80000000]] & 0xFFFFFFFF
    known = {71: most >= 7 and (words[_LEAF[7]] & 0xFFFFFFFF) >= 1}
    state = words[_XCR0]
    found = {}
    for name, (leaf, word, bit) in _FEATURES.items():
        there = known.get(leaf, leaf <= (extended if leaf >= 0x80000000 else most))
        found[name] = there and bool(words[word] >> bit & 1) and _usable(name, state)
    return found


def missing_features(words: Sequence[int], features: Iterable[str]) -> list[str]:
    """Those of the features that the CPU does not have; names that are not in the table count as there."""
    found = has_features(words)
    return [name for name in features if not found.get(name, True)]


def _usable(name: str, state: int) -> bool:
    """Whether the operating system saves the registers that a feature uses."""
    needed = _state_of(name)
    return state & needed == needed


def _state_of(name: str) -> int:
    """The bits of XCR0 that a feature needs."""
    if name.startswith("avx512"):
        return _AVX512
    if name.startswith("amx"):
        return _AMX
    if name.startswith("avx") or name in ("fma", "f16c", "fma4", "xop", "vaes", "vpclmulqdq"):
        return _AVX
    return 0
