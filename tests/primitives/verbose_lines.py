"""Verbose lines taken apart, and the command that each stands for."""

from typing import NamedTuple


class Line(NamedTuple):
    """A line as oneDNN's converter takes it apart (scripts/verbose_converter/src/parse.py, version 1)."""

    operation: str
    engine: str
    primitive: str
    implementation: str
    prop_kind: str
    memory_descriptors: str
    attributes: str
    auxiliary: str
    problem_desc: str
    exec_time: str

    @property
    def mds(self) -> dict[str, dict[str, str]]:
        names = ("type", "properties", "kind", "tag", "strides", "flags")
        fields = (md.split(":") for md in self.memory_descriptors.split())
        return {md[0]: dict(zip(names, md[1:], strict=True)) for md in fields}

    def tag(self, md: str) -> str:
        return "any" if "a" in self.mds[md]["properties"] else self.mds[md]["tag"]

    def tags(self, **arguments: str) -> list[str]:
        return [f"--{option}={self.tag(md)}" for option, md in arguments.items()]

    def command(self) -> list[str]:
        """The words of `asmdnn bench` that this line stands for."""
        driver = {"convolution": "conv", "inner_product": "ip"}.get(self.primitive, self.primitive)
        attributes = [f"--{attribute.replace(':', '=', 1)}" for attribute in self.attributes.split()]
        facts = dict(word.split(":") for word in self.auxiliary.split())
        return [f"--{driver}", *getattr(self, f"_{driver}")(facts), *attributes, self.problem_desc]

    def _conv(self, facts: dict[str, str]) -> list[str]:
        training = self.prop_kind == "forward_training"
        direction = "FWD_B" if "bia" in self.mds else "FWD_D" if training else "FWD_I"
        return [f"--dir={direction}", *self.tags(stag="src", wtag="wei", dtag="dst")]

    def _matmul(self, facts: dict[str, str]) -> list[str]:
        tags = self.tags(stag="src", wtag="wei", dtag="dst")
        if "bia" not in self.mds:
            return tags
        return ["--bia_dt=f32", f"--bia_mask={self.mds['bia']['flags'].removeprefix('f0_mask')}", *tags]

    def _ip(self, facts: dict[str, str]) -> list[str]:
        if self.prop_kind.startswith("forward"):
            return self._conv(facts)
        if self.prop_kind == "backward_data":
            return ["--dir=BWD_D", *self.tags(stag="diff_src", wtag="wei", dtag="diff_dst")]
        direction = "BWD_WB" if "diff_bia" in self.mds else "BWD_W"
        return [f"--dir={direction}", *self.tags(stag="src", wtag="diff_wei", dtag="diff_dst")]

    def _eltwise(self, facts: dict[str, str]) -> list[str]:
        directions = {"forward_training": "FWD_D", "forward_inference": "FWD_I", "backward_data": "BWD_D"}
        numbers = [f"--alg={facts['alg']}", f"--alpha={facts['alpha']}", f"--beta={facts['beta']}"]
        first = next(iter(self.mds))
        return [f"--dir={directions[self.prop_kind]}", f"--tag={self.tag(first)}", *numbers]

    def _binary(self, facts: dict[str, str]) -> list[str]:
        tags = f"--stag={self.tag('src0')}:{self.tag('src1')}"
        return [f"--alg={facts['alg']}", tags, *self.tags(dtag="dst")]

    def _gemm(self, facts: dict[str, str]) -> list[str]:
        trans = [f"--trans{x}={'N' if self.mds[x]['tag'] == 'ab' else 'T'}" for x in "ab"]
        return [*trans, *(f"--{name}={number.replace('any', '0.5')}" for name, number in facts.items())]

    def _reorder(self, facts: dict[str, str]) -> list[str]:
        return self.tags(stag="src", dtag="dst")


def lines(output: str, operation: str = "") -> list[Line]:
    rows = [line.split(",") for line in output.splitlines()]
    assert all(row[:2] == ["asmdnn_verbose", "v1"] for row in rows)
    events = [row[3:] if row[2] == "primitive" else row[2:] for row in rows if "info" not in row[2:4]]
    return [Line(*event) for event in events if event[0].startswith(operation)]
