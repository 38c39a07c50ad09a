"""Too few members are there to go on: the run is PAUSED, says why and what helps, and resumes automatically; `stop` leaves it."""

import os
import re
import shutil
import signal
import unittest

from mesh import QUICK, Mesh
from patience import wait_until

JOB = {"steps": 120, "data-train": 1024, "evaluate-every": 60, "digest-every": 10, "schedule": "constant"}
SENIOR, JUNIOR = 0, 1  # with two equal members the lower seat is the senior


class TwoNodes(unittest.TestCase):
    def begin(self, mesh, job=None):
        """A run whose senior has been killed, and the step at which the junior is PAUSED."""
        run = mesh.detach(JOB | (job or {}), node=JUNIOR)
        mesh.wait_for_step(run, 5, node=JUNIOR)
        mesh[SENIOR].signal(signal.SIGKILL)
        mesh[SENIOR].wait()
        where = f"node-b (log {mesh[JUNIOR].log}) says that {run} is PAUSED"
        shown = wait_until(where, lambda: self.paused(mesh, run))
        self.assertRegex(
            shown["reason"],
            r"^quorum lost: 1 of 2 voters reachable; resumes when node-a returns; `tgctl stop` keeps step \d+$",
        )
        return run, int(re.search(r"keeps step (\d+)", shown["reason"]).group(1))

    def paused(self, mesh, run):
        """What status says once the junior has sealed: until then nothing is said of what `stop` keeps."""
        shown = mesh.run(run, node=JUNIOR)
        return shown if shown["state"] == "PAUSED" and "keeps step" in shown["reason"] else None

    def test_resumes_by_itself(self):
        with Mesh(2) as mesh:
            run, step = self.begin(mesh)
            text = mesh.ctl_ok("status", run, node=JUNIOR).out
            self.assertRegex(text, r"state +PAUSED for ")
            self.assertIn("resumes when node-a returns", text.replace("\n", " "))
            self.assertIn("event=paused ", mesh[JUNIOR].log_text())
            waits = mesh.follow("wait", run, node=JUNIOR)
            timed = mesh.ctl("wait", run, "--timeout", "1s", node=JUNIOR)
            timed.ends(124, f"run {run} is PAUSED at step ", "node-a returns")
            self.assertEqual(timed.err.count("is PAUSED at step"), 2, f"once when it is seen, once at the end: {timed}")

            mesh[SENIOR].start()
            answer = waits.finish()
            answer.ends(0, f"run {run} is PAUSED at step ", f"run {run} continues at step {step} with 1 of 2 members: node-a left")
            self.assertEqual(answer.out, "COMPLETED\n")
            mesh.wait_ready()
            for node in (JUNIOR, SENIOR):
                shown = mesh.run(run, node=node)
                self.assertEqual((shown["state"], shown["step"], shown["view"]), ("COMPLETED", JOB["steps"], 2), shown)
                self.assertEqual([member["node"] for member in shown["members"]], ["node-b"], shown)
                self.assertEqual([(one["node"], one["step"]) for one in shown["left"]], [("node-a", step)], shown)
            self.assertRegex(mesh.ctl_ok("status", run, node=SENIOR).out, rf"node-a +left +{step} ")
            log = mesh[JUNIOR].log_text()
            self.assertEqual(log.count("event=view-changed "), 1, log)
            self.assertRegex(log, rf"event=view-changed run={run} view=2 members=1 from-step={step} why=.* promised-ms=\d+ decided-ms=\d+ rebuilt-ms=\d+")
            self.assertRegex(log, r"event=pause-ended run=\S+ state=RUNNING after-ms=\d+")
            mesh.start(QUICK)

    def test_stop_leaves_it(self):
        with Mesh(2) as mesh:
            run, step = self.begin(mesh)
            answer = mesh.ctl("stop", run, node=JUNIOR)
            answer.ends(10, f"left at step {step}: stopped here while PAUSED", f"tgctl resume {run} continues it")
            self.assertEqual(answer.out, "INTERRUPTED\n")
            self.assertEqual(mesh[JUNIOR].record(run)["state"], "INTERRUPTED")
            mesh[SENIOR].start()
            mesh.wait_ready()
            self.assertEqual(mesh.run(run, node=SENIOR)["state"], "INTERRUPTED")
            mesh.start(QUICK)  # a new one is allowed
            follower = mesh.follow("resume", run, "--set", f"steps={step + 20}", node=SENIOR)
            answer = follower.finish()
            answer.ends(0, f"run {run} resumes at step ")


class LostVotes(TwoNodes):
    """All nodes are up, and the vote that is needed is lost: all say so, and what to type. Typed once it is enough."""

    test_resumes_by_itself = test_stop_leaves_it = None

    def lose(self, node, run, how):
        vote = node.run_file(run, "vote")
        if how == "wiped":
            shutil.rmtree(node.state_dir)
        elif how == "missing":
            os.remove(vote)
        else:
            with open(vote, "r+b") as file:
                file.write(b"?")

    def test_a_lost_vote_is_named_with_the_way_out(self):
        whys = {"wiped": "it has no record of the run", "missing": "vote: No such file", "damaged": "vote is damaged"}
        for how, why in whys.items():
            with self.subTest(how=how), Mesh(2) as mesh:
                job = {"join-limit": "60s", "auto-resume": "true"}
                run, step = self.begin(mesh, job)
                self.lose(mesh[SENIOR], run, how)
                mesh[SENIOR].start()
                mesh.wait_ready()
                way = f"the vote of node-a is lost, and no node's return helps; `tgctl stop {run}` keeps step {step}, then `tgctl resume {run}` at node-b continues it"
                for node in (JUNIOR, SENIOR):
                    shown = wait_until(
                        f"node {node} says what is lost: {mesh.run(run, node=node)}",
                        lambda at=node: (one := mesh.run(run, node=at))["state"] == "PAUSED" and way in one["reason"] and why in one["reason"] and one,
                    )
                    doctor = mesh.ctl("doctor", "--no-bandwidth", node=node)
                    self.assertNotEqual(doctor.code, 0, doctor)
                    self.assertIn("the vote of node-a is lost", " ".join(doctor.out.split()), shown)
                mesh.ctl("resume", run, node=JUNIOR).refuses(1, f"run {run} is PAUSED: ", way)
                mesh.ctl("stop", run, node=SENIOR).ends(10)
                answer = mesh.ctl("resume", run, "--detach", node=JUNIOR)
                answer.ends(0, f"run {run} resumes at step {step if how == 'wiped' else ''}")
                wait_until(f"both are in it: {mesh[SENIOR].log}", lambda: [one["node"] for one in mesh.run(run, node=SENIOR)["members"]] == ["node-a", "node-b"])
                mesh.ctl("wait", run, node=SENIOR).ends(0)

    def test_an_old_vote_is_refused_by_name(self):
        """node-a's vote, or its whole directory, is put back from an older copy, while node-b knows what node-a has told since."""
        for whole in (False, True):
            with self.subTest(whole=whole), Mesh(2) as mesh:
                run = mesh.detach(JOB | {"steps": 1000000, "join-limit": "60s", "auto-resume": "true"})
                mesh.wait_for_step(run, 5)
                what = mesh[SENIOR].state_dir if whole else mesh[SENIOR].run_file(run, "vote")
                copy = os.path.join(mesh.folder, "older")
                mesh[SENIOR].copy_state(copy) if whole else shutil.copy(what, copy)
                mesh[JUNIOR].kill()
                mesh[JUNIOR].start()
                wait_until(f"node-b is in again: {mesh[JUNIOR].log}", lambda: mesh.run(run)["view"] == 3 and len(mesh.run(run)["members"]) == 2)
                mesh[SENIOR].kill()
                wait_until(f"node-b is PAUSED: {mesh[JUNIOR].log}", lambda: self.paused(mesh, run))
                if whole:
                    shutil.rmtree(what)
                os.rename(copy, what)
                mesh[SENIOR].start()
                way = f"the vote of node-a is lost, and no node's return helps; `tgctl stop {run}` keeps step "
                for node in (JUNIOR, SENIOR):
                    shown = wait_until(
                        lambda: f"the old vote is named: {mesh.run(run, node=JUNIOR)}",
                        lambda at=node: way in (one := mesh.run(run, node=at))["reason"] and one["state"] == "PAUSED" and one,
                    )
                    self.assertRegex(shown["reason"], r"\(node-a: the vote of node-a is old: \d+, but it has told \d+; was its state-dir restored or copied\?\)")
                mesh.ctl("stop", run, node=JUNIOR).ends(10)
                mesh.ctl("resume", run, "--detach", node=JUNIOR).ends(0, f"run {run} resumes at step ")
                mesh.wait_for_step(run, shown["step"] + 5)
                self.assertEqual(mesh.run(run)["lineage"], 2)

    def test_no_vote_is_written_where_the_directory_is_not_the_one(self):
        """A mount goes away below a running tgd: nothing is made in its place, and the run goes on when it is back."""
        with Mesh(3) as mesh:
            run = mesh.detach(JOB | {"steps": 1000000, "join-limit": None})
            mesh.wait_for_step(run, 5)
            at, away = mesh[1].state_dir, os.path.join(mesh.folder, "away")
            os.rename(at, away)
            os.mkdir(at)
            mesh[2].kill()
            why = f"node-b cannot write its vote: state-dir {at} is not the directory that tgd began with"
            for node in (0, 1):
                wait_until(lambda: f"node-b's directory is named: {mesh.run(run)}", lambda here=node: why in mesh.run(run, node=here)["reason"])
            self.assertEqual(os.listdir(at), [])
            os.rmdir(at)
            os.rename(away, at)
            step = mesh.run(run)["step"]
            mesh.wait_for_step(run, step + 5)
            self.assertEqual([one["node"] for one in mesh.run(run)["members"]], ["node-a", "node-b"])
            mesh.ctl_ok("stop", run)

    def test_another_directory_is_no_voter(self):
        """A mount that is missing at one restart and there at the next one; a disk that is a copy of another node's."""
        with Mesh(3, {"peer-timeout": "2s"}) as mesh:
            run = mesh.detach(JOB | {"steps": 1000000, "join-limit": "60s", "auto-resume": "true"})
            mesh.wait_for_step(run, 5)
            at, away = mesh[2].state_dir, os.path.join(mesh.folder, "away")

            def replaced(put):
                view = mesh.run(run)["view"]
                mesh[2].kill()
                put()
                mesh[2].start()
                wait_until(lambda: f"node-c is in again (log {mesh[2].log}): {mesh.run(run)}", lambda: len((one := mesh.run(run))["members"]) == 3 and one["view"] >= view + 2)
                mesh.wait_for_step(run, mesh.run(run)["step"] + 5)

            replaced(lambda: os.rename(at, away))
            replaced(lambda: (shutil.rmtree(at), os.rename(away, at)))
            replaced(lambda: (shutil.rmtree(at), mesh[1].copy_state(at)))
            mesh.ctl_ok("stop", run)
            mesh.ctl_ok("wait", run)
            self.assertEqual({(node.record(run)["lineage"], node.record(run)["digest"]) for node in mesh.nodes}, {(1, mesh[0].record(run)["digest"])})

    def test_a_vote_that_may_be_needed_is_not_deleted(self):
        """Not even by one that does not hear the PAUSED member; and without its run it is still a vote."""
        with Mesh(2) as mesh:
            run, step = self.begin(mesh)
            mesh[JUNIOR].signal(signal.SIGSTOP)
            mesh[SENIOR].start()
            wait_until("node-a is up", lambda: mesh.ctl("status", run, node=SENIOR).code == 0)
            answer = mesh.ctl("delete", run, node=SENIOR)
            answer.ends(1, f"node-b may be PAUSED in run {run} and need the vote of node-a", f"tgctl resume {run} --without node-b")
            mesh[SENIOR].kill()
            runs, votes = (os.path.join(mesh[SENIOR].state_dir, name, run) for name in ("runs", "votes"))
            os.makedirs(votes)
            os.rename(os.path.join(runs, "vote"), os.path.join(votes, "vote"))
            shutil.rmtree(runs)
            mesh[JUNIOR].signal(signal.SIGCONT)
            mesh[SENIOR].start()
            mesh.ctl("wait", run, node=JUNIOR).ends(0)
            self.assertIn(f"from-step={step}", mesh[JUNIOR].log_text())
            wait_until("node-a learns the end of the run", lambda: not os.path.exists(votes))
            mesh.ctl_ok("delete", run, node=JUNIOR)


if __name__ == "__main__":
    unittest.main()
