/** Standard operating procedures: definitions, triggers, runs and their audit (§2.4, §4.3). */

export { STEP_OWNER, sessionOf } from './agent-step.ts'
export { createSopEngine, type SopEngine } from './engine.ts'
export type { SopAgent, SopEngineDeps, SopLibrary, SopSettings, TurnOutcome } from './engine-deps.ts'
export { jsonOrText, resolveInput } from './resolve-input.ts'
export { triggerText } from './trigger-text.ts'
