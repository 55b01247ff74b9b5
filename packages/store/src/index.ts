/** The embedded store: one SQLite file with group commit, the lock on its folder, and secrets encrypted at rest. */
export type { DataDirLock } from './lock-data-dir.ts'
export { lockDataDir } from './lock-data-dir.ts'
export type { StoreOptions } from './open-store.ts'
export { openStore } from './open-store.ts'
export type { SecretBox } from './secret-box.ts'
export { openSecretBox } from './secret-box.ts'
export { secretStore } from './secret-store.ts'
