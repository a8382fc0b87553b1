// check_manifests.mjs KUSTOMIZE FOLDER...: renders each Kustomize folder, and checks every object in it
// against the schemas of Kubernetes and of the operators in manifest_requirements.json. The schemas find
// values that are wrong or missing, TypeScript finds fields that do not exist. Objects of KServe, which
// has no such schemas, are left to tests/end_to_end/test_deploy_kserve.py.
//
// Has to be copied to, and runs in, a folder whose node_modules has these packages.
import { execFileSync, spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import yaml from "js-yaml";

const packages = {
  "keda.sh": "@kubernetes-models/keda",
  "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
};

function moduleOf(object) {
  const group = object.apiVersion.split("/")[0];
  return `${packages[group] ?? "kubernetes-models"}/${object.apiVersion}/${object.kind}`;
}

const [kustomize, ...folders] = process.argv.slice(2);
const source = [];
const names = [];
let failed = false;
for (const folder of folders) {
  for (const object of yaml.loadAll(execFileSync(kustomize, ["build", folder], { encoding: "utf8" }))) {
    const name = `${folder}: ${object.kind} ${object.metadata.name}`;
    if (object.apiVersion.startsWith("serving.kserve.io/")) continue;
    const module = moduleOf(object);
    try {
      new (await import(module))[object.kind](object).validate();
    } catch (error) {
      console.error(`${name}: ${error.message}`);
      failed = true;
    }
    // A line for each object, so that the number of a line is the place of its name.
    source.push(`export const o${names.length}: import("${module}").I${object.kind} = ${JSON.stringify(object)};`);
    names.push(name);
  }
}

writeFileSync("objects.ts", source.join("\n"));
const types = spawnSync("node_modules/.bin/tsc",
  ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "objects.ts"], { encoding: "utf8" });
rmSync("objects.ts");
if (types.status !== 0) {
  console.error(String(types.error ?? types.stdout).replace(/^objects\.ts\((\d+),\d+\): error TS\d+/gm, (_, line) => names[line - 1]));
  failed = true;
}
if (names.length === 0) failed = true;
process.exit(failed ? 1 : 0);
