/**
 * The composition root of Sluice: one runtime, its HTTP side and the configuration watch. `createSluice` starts it in any program;
 * `@sluice/daemon/agent`, `/procedures` and `/sandbox` start parts of it.
 */
export { createSluice, type Sluice, type SluiceOptions } from './create-sluice.ts'
export { type Daemon, type DaemonOptions, type ListenAddress, startDaemon } from './daemon.ts'
export type { EventOf, RunOptions, RunResult } from './embedded-turns.ts'
export type { EmbeddingOptions } from './embedding-options.ts'
export { DRAIN_MS, STOP_MS_MAX } from './stop-times.ts'
