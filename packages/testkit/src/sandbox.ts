/** The conformance suite of sandbox backends, tried from inside: call `sandboxConformance` in a sandbox's tests. */
import type { Sandbox } from '@sluice/sdk'
import { holdRules, type LeftOut, type Rules } from './rules.ts'
import { createSandboxBench } from './sandbox-rules/bench.ts'
import { fileRules } from './sandbox-rules/files.ts'
import { limitRules } from './sandbox-rules/limits.ts'
import { reachRules } from './sandbox-rules/reach.ts'
import { runRules } from './sandbox-rules/run.ts'

export interface SandboxSubject {
  readonly name: string
  /** A backend whose probe passes on this machine. */
  create(): Sandbox
  /** Rules this backend does not keep, each with its reason. */
  readonly except?: readonly LeftOut[]
}

/** Registers tests that run real commands and real attempts to escape; `sh` and, for some, `perl` must exist in the sandbox. */
export const sandboxConformance = (subject: SandboxSubject): void =>
  holdRules(`sandbox conformance: ${subject.name}`, sandboxRules(subject), subject.except)

/** Returns the rules by title. */
export function sandboxRules(subject: SandboxSubject): Rules {
  const inBench = createSandboxBench(subject)
  return { ...runRules(subject, inBench), ...fileRules(inBench), ...reachRules(inBench), ...limitRules(inBench) }
}
