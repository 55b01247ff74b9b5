/**
 * The operators' agreements to procedures in folders that the agent can write. An agreement covers the content of both files, by
 * its hash: a new or changed procedure is not loaded until an operator agrees to its present content.
 */
import { type KeyValue, sha256Hex } from '@sluice/sdk'

/** Content hashes by the absolute folder of each procedure. */
export type Agreed = ReadonlyMap<string, string>

/** The stored agreements. Methods that write resolve once the change is durable. */
export interface Agreements {
  all(): Promise<Agreed>
  agree(folder: string, hash: string): Promise<void>
  forget(folder: string): Promise<void>
  /** True until `upgraded` is called, in an installation of an earlier release: its procedures ran without agreements. */
  isUpgrade(): Promise<boolean>
  upgraded(): Promise<void>
}

const PREFIX = 'agreed '
/** The store's migration that introduces agreements writes this key. */
const UPGRADE = 'agree_to_workspace'
const AGREEMENTS_MAX = 20_000

/** `keyValue` must belong to the owner `sop`. */
export const createAgreements = (keyValue: KeyValue): Agreements => ({
  async all() {
    const rows = await keyValue.list(PREFIX, AGREEMENTS_MAX)
    return new Map(rows.map(({ key, value }) => [key.slice(PREFIX.length), String(value)]))
  },
  agree: (folder, hash) => keyValue.set(PREFIX + folder, hash),
  forget: (folder) => keyValue.delete(PREFIX + folder),
  isUpgrade: async () => (await keyValue.get(UPGRADE)) === true,
  upgraded: () => keyValue.delete(UPGRADE),
})

/** Returns the hash that an agreement covers. A file that cannot be read counts as absent. */
export const contentHash = (toml: string | null, md: string | null): string => sha256Hex(JSON.stringify([toml, md]))
