/** What every isolation backend has to keep to, tried from the inside: `sandboxConformance` in a sandbox's tests. */
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
  /** What this backend does not promise, by rule. */
  readonly except?: readonly LeftOut[]
}

/** Runs real commands and real attempts to break out; needs `sh` and, for some, `perl` inside the sandbox. */
export const sandboxConformance = (subject: SandboxSubject): void =>
  holdRules(`sandbox conformance: ${subject.name}`, sandboxRules(subject), subject.except)

export function sandboxRules(subject: SandboxSubject): Rules {
  const inBench = createSandboxBench(subject)
  return { ...runRules(subject, inBench), ...fileRules(inBench), ...reachRules(inBench), ...limitRules(inBench) }
}
