/** Standard operating procedures: definitions, triggers, runs and their audit (§2.4, §4.3). */

export { STEP_OWNER } from './agent-step.ts'
export { type Agreed, type Agreements, contentHash, createAgreements } from './agreements.ts'

export { CronClock, type CronClockDeps } from './cron-clock.ts'
export type { SopDefinition, SopProblem, SopTrigger } from './definition.ts'
export { createSopEngine, type SopEngine } from './engine.ts'
export type { SopAgent, SopEngineDeps, SopLibrary, SopSettings, TurnOutcome } from './engine-deps.ts'
export type { CostRange, ModelLimits } from './estimate-cost.ts'
export { gateBefore } from './gate-before.ts'
export { type LibraryDeps, type LibrarySettings, SopFolder } from './library.ts'
export type { WaitingSop } from './load-sop.ts'
export type { CronDue, CronTrigger } from './plan-cron.ts'
export { readEvent } from './read-event.ts'
export { jsonOrText, resolveInput } from './resolve-input.ts'
export { runOfSession, sessionOf } from './step-session.ts'
export { triggerText } from './trigger-text.ts'
