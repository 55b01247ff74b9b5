/** Standard operating procedures: definitions, triggers, runs and their audit. See docs/contract.md#procedures. */

export { STEP_OWNER } from './agent-step.ts'
export { type Agreed, type Agreements, contentHash, createAgreements } from './agreements.ts'
export { CronClock, type CronHandler } from './cron-clock.ts'
export type { SopDefinition, SopProblem, SopTrigger } from './definition.ts'
export { SopEngine } from './engine.ts'
export type { EnginePorts, SopAgent, SopLibrary, SopSettings, TurnOutcome } from './engine-ports.ts'
export { FolderLibrary, type LibraryServices, type LibrarySettings } from './folder-library.ts'
export { jsonOrText } from './json-text.ts'
export type { CronDue, CronTrigger } from './plan-cron.ts'
export { resolveInput } from './resolve-input.ts'
export { runOfSession, sessionOf } from './run-identity.ts'
export type { CostRange, ModelLimits } from './simulate.ts'
