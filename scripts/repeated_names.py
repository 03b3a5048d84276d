"""Finds names that two headers define in one namespace: variables, functions and types of one name that differ are one
thing for the linker, which keeps one of them, silently (the one definition rule). tidy.py runs this."""

import re

# Comments, literals and preprocessor lines.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*)$")
BODY = re.compile(r"\)[^()=]*\{\}$")
TYPE = re.compile(r"(?:struct|class|enum class|enum|union) (?:\w+ ?\([^)]*\) ?)?([\w:]+(?:<.*?>)?)(?: final)?(?: :[^{:]*)? ?\{")
NO_ENTITY = re.compile(r"(?:using|static_assert|typedef|friend|static|template struct|extern template|struct [\w:]+$|class [\w:]+$)\b|\w+\(")
FUNCTION = re.compile(r"((?:[\w<>]+::)*~?\w+|operator ?[^\w\s(]{1,3}|operator\(\)) ?\((.*)\)[^()]*$")
VARIABLES = re.compile(r"(\w+)(?:\[[^\]]*\])* ?[={]")


def without_literals(text):
    def blank(found):
        kept = re.sub(r"[^\n]", "", found.group(0))
        return kept + ('""' if found.group(0)[0] in 'R"' else "0" if found.group(0)[0] == "'" else "")
    return NOT_CODE.sub(blank, text)


def declarations(text):
    """(namespaces, declaration, line) of whatever stands outside of functions and types; {} stands for a body."""
    spaces, depth, declaration, start, line = [], 0, "", 1, 1
    for letter in without_literals(text):
        line += letter == "\n"
        if depth:
            depth += (letter == "{") - (letter == "}")
            if depth:
                continue
            declaration += "}"
            if BODY.search(" ".join(declaration.split())):
                yield spaces[:], declaration, start
                declaration = ""
        elif letter == "{":
            head = " ".join(declaration.split())
            if named := NAMESPACE.match(head) or re.match(r'(extern) ""$', head):
                spaces.append(named.group(1))
                declaration = ""
            else:
                depth = 1
                declaration += "{"
        elif letter == "}":
            if spaces:
                spaces.pop()
            declaration = ""
        elif letter == ";":
            yield spaces[:], declaration, start
            declaration = ""
        else:
            if not declaration.strip():
                declaration, start = "", line
            declaration += letter


def split_list(text):
    """The parts between the commas that no bracket encloses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<({[") - (letter in ">)}]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def parameter_types(text):
    """The types of a parameter list, without names and defaults: overloads differ in them."""
    types = []
    for one in split_list(text):
        one = one.split(" = ")[0].strip()
        if re.search(r"[\w>&*] ?\b(?!const\b|int\b|unsigned\b|long\b)\w+$", one) and re.search(r"[ &*]", one):
            one = re.sub(r"\w+$", "", one)
        types.append(one.replace(" ", ""))
    return ",".join(types)


def without_template(declaration):
    if not declaration.startswith("template"):
        return declaration
    depth = 0
    for i, letter in enumerate(declaration):
        depth += (letter == "<") - (letter == ">" and declaration[i - 1] != "-")
        if letter == ">" and not depth:
            return declaration[i + 1:].strip()
    return declaration


def names_of(declaration):
    """The names that a declaration gives: of a type, a function (with its parameters), or variables."""
    declaration = without_template(re.sub(r"\[\[.*?\]\] ?", "", " ".join(declaration.split())))
    if named := TYPE.match(declaration):
        return [named.group(1)]
    if not declaration or NO_ENTITY.match(declaration):
        return []
    head = declaration[:-2].strip() if declaration.endswith("{}") else declaration
    before = head.split("(")[0]
    if "=" in before.replace("operator", "") and "operator" not in before or (
            declaration.endswith("{}") and not head.endswith(")") and not FUNCTION.search(head)):
        # constexpr alone: each file has its own.
        if not re.match(r"(?:\w+ )*?(inline|extern)\b", declaration):
            return []
        return [name for part in split_list(re.sub(r"<[^<>=]*>", "", declaration))
                for name in VARIABLES.findall(part)[:1]]
    if named := FUNCTION.search(head):
        return [f"{named.group(1)}({parameter_types(named.group(2))})"]
    return []


# Files of which a build has one or the other, and main functions.
ALTERNATIVE = re.compile(r"(_none|_absent|_eigen|_openblas|_main|/main)\.(cc|cu)$")


def repeated_names(files):
    """An error for each name that two of the files, (path, text), define in one namespace."""
    places = {}
    for path, text in files:
        if ALTERNATIVE.search(path):
            continue
        is_source = path.endswith((".cc", ".cu"))
        for spaces, declaration, line in declarations(text):
            if "" in spaces:  # an unnamed namespace
                continue
            for name in names_of(declaration):
                # A source file defines what a header declares; it must not be what another source file defines.
                kind = "source" if is_source and "(" in name else "any"
                places.setdefault((kind, "::".join(spaces + [name])), {}).setdefault(path, line)
    for (_, name), where in places.items():
        if len(where) > 1:
            (first, at), (second, line) = list(where.items())[:2]
            yield f"{second}:{line}: {name} is already in {first}:{at}: choose another name, or declare it in one header"
