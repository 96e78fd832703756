# As a model writes it: "Audit the licences of this environment, save a report, tell me the essentials."
import asyncio
from collections import defaultdict


def licence_of(meta):
    if meta["license_expression"]:
        return meta["license_expression"]
    for classifier in meta["classifiers"]:
        if classifier.startswith("License :: OSI Approved :: "):
            return classifier.split(" :: ")[-1]
    text = (meta["license"] or "").strip()
    return text if text and len(text) < 60 and "\n" not in text else None


async def audit(dist):
    meta, files = await asyncio.gather(read_metadata(dist["name"]), read_record(dist["name"]))
    return {
        "name": dist["name"],
        "version": dist["version"],
        "licence": licence_of(meta),
        "files": len(files),
        "bytes": sum(f["bytes"] or 0 for f in files),
    }


dists = await list_distributions()
rows = await asyncio.gather(*(audit(d) for d in dists))

groups = defaultdict(list)
for row in rows:
    groups[row["licence"] or "unknown"].append(row["name"])

lines = ["# Licences of this environment", "", "| licence | distributions |", "|---|---|"]
for licence, names in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
    lines.append(f"| {licence} | {', '.join(sorted(names))} |")
lines += ["", "| distribution | version | files | bytes |", "|---|---|---:|---:|"]
lines += [f"| {r['name']} | {r['version']} | {r['files']} | {r['bytes']:,} |" for r in rows]
saved = await save_report("\n".join(lines) + "\n")

print(f"{len(rows)} distributions under {len(groups)} licences; the report has {saved:,} bytes.")
return {
    "most_common": {k: len(v) for k, v in sorted(groups.items(), key=lambda i: (-len(i[1]), i[0]))[:5]},
    "unknown": sorted(groups.get("unknown", [])),
    "files": sum(r["files"] for r in rows),
    "bytes": sum(r["bytes"] for r in rows),
    "largest": [r["name"] for r in sorted(rows, key=lambda r: -r["bytes"])[:3]],
}
