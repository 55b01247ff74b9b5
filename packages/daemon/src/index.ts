/** The composition root of Sluice: one runtime, its HTTP side and the configuration watch. `createSluice` starts it in any program. */
export { createSluice, type EventOf, type RunOptions, type RunResult, type Sluice, type SluiceOptions } from './create-sluice.ts'
export { type Daemon, type DaemonOptions, DRAIN_MS, type ListenAddress, startDaemon } from './daemon.ts'
