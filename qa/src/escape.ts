/** The suite of attempts to escape from a sandbox, tried from inside: call `sandboxEscapes` in a sandbox's tests. */

import { type Rules, registerRules } from '@sluice/testkit/rules'
import type { SandboxSubject } from '@sluice/testkit/sandbox'
import { createSandboxBench } from '@sluice/testkit/sandbox-rules/bench'
import { environmentEscapes } from './escape/environment.ts'
import { fileEscapes } from './escape/files.ts'
import { kernelEscapes } from './escape/kernel.ts'
import { networkEscapes } from './escape/network.ts'
import { processEscapes } from './escape/processes.ts'
import { resourceEscapes } from './escape/resources.ts'
import { socketEscapes } from './escape/sockets.ts'
import { survivalEscapes } from './escape/survival.ts'
import { systemFileEscapes } from './escape/system-files.ts'
import { terminalEscapes } from './escape/terminal.ts'

/** Registers one test for each attempt, titled by the outcome it requires. `sh` and `perl` must exist in the sandbox. */
export const sandboxEscapes = (subject: SandboxSubject): void =>
  registerRules(`sandbox escapes: ${subject.name}`, escapeRules(subject), subject.except)

/** The attempts by title; a check throws if an attempt affects anything outside. A successful attempt does no harm. */
export function escapeRules(subject: SandboxSubject): Rules {
  const inBench = createSandboxBench(subject)
  return {
    ...fileEscapes(inBench),
    ...systemFileEscapes(inBench),
    ...processEscapes(inBench),
    ...networkEscapes(inBench),
    ...socketEscapes(inBench),
    ...kernelEscapes(inBench),
    ...resourceEscapes(inBench),
    ...environmentEscapes(inBench),
    ...terminalEscapes(inBench),
    ...survivalEscapes(inBench),
  }
}
