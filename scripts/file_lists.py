"""Part of tidy.py: finds sources that no CMakeLists.txt builds, and headers that no README names."""

import posixpath
import re

# Words of a CMake file that can be paths: "x.cc", "../core/x.cc", "dense/x".
WORD = re.compile(r'[^\s"();]+')


def folders_of(name):
    """The folder of a file, and those above it, up to "" for the root."""
    while name:
        name = name.rpartition("/")[0]
        yield name


def built_files(cmake_files):
    """The paths that CMake files name. cmake_files: text by path."""
    built = set()
    for path, text in cmake_files.items():
        folder = posixpath.dirname(path)
        for word in WORD.findall(re.sub(r"#.*", "", text)):
            word, from_root = re.subn(r"^\$\{(PROJECT|CMAKE)_SOURCE_DIR\}/", "", word)
            at = posixpath.normpath(word if from_root else posixpath.join(folder, word))
            built.add(at)
            if path == "cuda/CMakeLists.txt":  # an op
                built |= {f"cuda/op/{word}_cpu.cc", f"cuda/op/{word}.cu"}
    return built


def unlisted(names, text_of):
    """Yields an error for each source that is never compiled, and for each header without a row in a README.

    names: all files of the repository. text_of: from a name to the contents of the file.
    """
    built = built_files({name: text_of(name) for name in names
                         if name.endswith(("CMakeLists.txt", ".cmake"))})
    readmes = {name for name in names if posixpath.basename(name) == "README.md"}
    for name in names:
        if name.endswith((".cc", ".cu")) and name not in built:
            yield f"{name}: no CMakeLists.txt names it, so it is never compiled"
        if not name.endswith((".h", ".cuh")) or name.startswith("test/"):
            continue
        readme = next((f"{f}/README.md" for f in folders_of(name) if f"{f}/README.md" in readmes), None)
        if readme and posixpath.basename(name) not in text_of(readme):
            yield f"{name}: {readme} has no row for it"
