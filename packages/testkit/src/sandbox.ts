/** The conformance suite of sandbox backends, tried from inside: call `sandboxConformance` in a sandbox's tests. */
import { type Rules, registerRules } from './rules.ts'
import { createSandboxBench, type SandboxSubject } from './sandbox-rules/bench.ts'
import { fileRules } from './sandbox-rules/files.ts'
import { limitRules } from './sandbox-rules/limits.ts'
import { reachRules } from './sandbox-rules/reach.ts'
import { runRules } from './sandbox-rules/run.ts'

export type { SandboxSubject } from './sandbox-rules/bench.ts'

/** Registers tests that run real commands and real attempts to escape; `sh` and, for some, `perl` must exist in the sandbox. */
export const sandboxConformance = (subject: SandboxSubject): void =>
  registerRules(`sandbox conformance: ${subject.name}`, sandboxRules(subject), subject.except)

/** Returns the rules by title. */
export function sandboxRules(subject: SandboxSubject): Rules {
  const inBench = createSandboxBench(subject)
  return { ...runRules(subject, inBench), ...fileRules(inBench), ...reachRules(inBench), ...limitRules(inBench) }
}
