/** The gateway: configuration, life cycle, HTTP, events and stubs. */
export { type ConfigSource, type LoadedConfig, readConfig } from './config.ts'
export { type Daemon, type DaemonOptions, startDaemon } from './daemon.ts'
export { type OpenRuntime, openRuntime, type RuntimeOptions } from './open-runtime.ts'
