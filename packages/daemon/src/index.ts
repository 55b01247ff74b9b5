/** The composition root of Sluice: one runtime, its HTTP side and the configuration watch. */
export { type Daemon, type DaemonOptions, DRAIN_MS, startDaemon } from './daemon.ts'
