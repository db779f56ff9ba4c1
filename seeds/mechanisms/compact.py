"""Write mechanisms.json, the compact form that is compiled into the program, from mechanisms.yaml."""

import json
import pathlib

import yaml

FOLDER = pathlib.Path(__file__).resolve().parent
KEPT = ("id", "title", "class", "memory", "phases", "contract_risk", "enters_global_batch", "aliases", "domain", "note")


def compact(mechanism: dict) -> dict:
    small = {key: mechanism[key] for key in KEPT if mechanism.get(key) not in (None, [])}
    for key in ("conflicts", "requires"):
        if mechanism.get(key):
            small[key] = mechanism[key]
    small["stacks"] = {
        stack: [
            {key: spelling[key] for key in ("kind", "name", "syntax", "default") if spelling.get(key) is not None}
            for spelling in facts["spellings"]
        ]
        for stack, facts in mechanism["stacks"].items()
        if facts.get("spellings")
    }
    return small


def main() -> None:
    data = yaml.safe_load((FOLDER / "mechanisms.yaml").read_text(encoding="utf-8"))
    lines = [json.dumps(compact(m), ensure_ascii=False, separators=(",", ":")) for m in data["mechanisms"]]
    text = '{"schema":"training-mechanisms/1","mechanisms":[\n' + ",\n".join(lines) + "\n]}\n"
    (FOLDER / "mechanisms.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
