/** Configuration for programs that start no daemon; kept apart from the rest, which is much more to load. */
export { CORE_SECTIONS, gatewaySection } from './config/core-sections.ts'
export { starterConfig } from './config/init-config.ts'
export { configSchema } from './config/json-schema.ts'
export type { LoadedConfig } from './config/types.ts'
export { effectiveConfig } from './effective-config.ts'
export { providerProblem } from './provider-problem.ts'
export { type ConfigSource, readConfig, readConfigText, sectionsOf } from './read-config.ts'
export { addToConfig, encryptInConfig, isSecretKey, sealConfig, setConfig } from './set-config.ts'
