#!/usr/bin/env python3
"""Checks the files of deploy/kubernetes against the schemas of a pinned version of Kubernetes, and against each other.

Needs kubernetes-validate, which scripts/test.sh installs with pip; exits with 77 without it.
"""

import pathlib
import re
import subprocess
import sys
import os
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build/kubernetes_validate"))
FOLDER = ROOT / "deploy/kubernetes"
# The oldest version in which all fields are stable; they are on by default since 1.29.
KUBERNETES = "1.33"

try:
    import kubernetes_validate
    import yaml
except ImportError:
    print("skipped: kubernetes-validate is not installed: pip install kubernetes-validate", file=sys.stderr)
    sys.exit(77)


def all_resources():
    return [(path.name, resource) for path in sorted(FOLDER.glob("*.yaml"))
            for resource in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def pods():
    """(file, kind, pod spec) of each resource that makes pods."""
    return [(name, resource["kind"], resource["spec"]["template"]["spec"]) for name, resource in all_resources()
            if "template" in resource.get("spec", {})]


def only(kind, file):
    found, = [resource for name, resource in all_resources() if name == file and resource["kind"] == kind]
    return found


class KubernetesFiles(unittest.TestCase):

    def test_every_resource_has_the_fields_of_its_schema(self):
        self.assertEqual(len(all_resources()), 9)
        for name, resource in all_resources():
            kubernetes_validate.validate(resource, KUBERNETES, strict=True)
            wrong = {**resource, "spec": {**resource["spec"], "noSuchField": 1}}
            with self.assertRaises(kubernetes_validate.ValidationError, msg=name):
                kubernetes_validate.validate(wrong, KUBERNETES, strict=True)

    def test_programs_and_flags_exist(self):
        programs = pathlib.Path(os.environ["CISTERN_BIN"])
        for name, _, spec in pods():
            container = spec["containers"][0]
            words = [word for word in container["command"] if not re.search(r"[/.]", word)]
            self.assertIn(words[0], ("cistern", "cistern-server", "cistern-worker"), name)
            shown = subprocess.run([programs / words[0], *words[1:], "--help"], capture_output=True, text=True, check=True).stdout
            for word in container["args"]:
                flag = word.split("=")[0]
                self.assertRegex(shown, rf"(?m)^\s+({flag}|.*,{flag})\b", name)

    def test_numbers_that_must_be_equal(self):
        servers, job = only("StatefulSet", "servers.yaml")["spec"], only("Job", "workers.yaml")["spec"]
        words = servers["template"]["spec"]["containers"][0]["args"]
        self.assertIn(f"--server_num={servers['replicas']}", words)
        container = job["template"]["spec"]["containers"][0]
        self.assertEqual(job["completions"], job["parallelism"])
        self.assertEqual([entry["value"] for entry in container["env"] if entry["name"] == "JOB_COMPLETIONS"],
                         [str(job["completions"])])
        addresses, = [word for word in container["args"] if word.startswith("--servers=")]
        self.assertEqual(addresses, "--servers=" + ",".join(
            f"cistern-server-{i}.{servers['serviceName']}:7700" for i in range(servers["replicas"])))

    def test_services_lead_to_the_pods(self):
        for file, service, kind in (("servers.yaml", "Service", "StatefulSet"), ("serve.yaml", "Service", "Deployment")):
            labels = only(kind, file)["spec"]["template"]["metadata"]["labels"]
            self.assertLessEqual(only(service, file)["spec"]["selector"].items(), labels.items())
            budget = only("PodDisruptionBudget", file)["spec"]
            self.assertLessEqual(budget["selector"]["matchLabels"].items(), labels.items())
        job = only("Job", "workers.yaml")
        self.assertEqual(only("Service", "workers.yaml")["spec"]["selector"], {"job-name": job["metadata"]["name"]})
        self.assertEqual(only("Service", "workers.yaml")["metadata"]["name"], job["spec"]["template"]["spec"]["subdomain"])

    def test_errors_that_no_repetition_heals_fail_the_job(self):
        first = only("Job", "workers.yaml")["spec"]["podFailurePolicy"]["rules"][0]
        self.assertEqual((first["action"], first["onExitCodes"]["values"]), ("FailJob", [2, 4, 5]))

    def test_pods_have_no_rights_and_bounded_resources(self):
        claims = {resource["metadata"]["name"] for _, resource in all_resources()
                  if resource["kind"] == "PersistentVolumeClaim"}
        image = re.search(r"--uid (\d+)", (ROOT / "deploy/docker/Dockerfile").read_text(encoding="utf-8")).group(1)
        for name, _, spec in pods():
            container = spec["containers"][0]
            self.assertEqual(str(spec["securityContext"]["runAsUser"]), image, name)
            self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"], name)
            self.assertEqual(container["resources"]["requests"], container["resources"]["limits"], name)
            self.assertFalse(spec["automountServiceAccountToken"], name)
            mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
            for volume in spec["volumes"]:
                if "persistentVolumeClaim" in volume:
                    self.assertIn(volume["persistentVolumeClaim"]["claimName"], claims, name)
                else:
                    # The comment says how to make the secret, and the environment where it is mounted.
                    self.assertIn(f"kubectl create secret generic {volume['secret']['secretName']} ",
                                  (FOLDER / name).read_text(encoding="utf-8"))
                    paths = [entry["value"] for entry in container["env"] if entry["name"].startswith("CISTERN_TLS_")]
                    self.assertEqual(paths, [f"{mounted[volume['name']]}/{key}" for key in ("ca.crt", "tls.crt", "tls.key")])


if __name__ == "__main__":
    unittest.main()
