/**
 * Which procedures in folders that the agent can write an operator has agreed to. An agreement is to the content of both files,
 * by its hash: a procedure that is new or changed is not loaded before an operator agrees to it as it is.
 */
import { type KeyValue, sha256Hex } from '@sluice/sdk'

/** Hashes by the absolute folders of procedures. */
export type Agreed = ReadonlyMap<string, string>

export interface Agreements {
  all(): Promise<Agreed>
  agree(folder: string, hash: string): Promise<void>
  forget(folder: string): Promise<void>
  /** True until `upgraded` is called, in an installation that an earlier release used: its procedures ran without agreements. */
  isUpgrade(): Promise<boolean>
  upgraded(): Promise<void>
}

const PREFIX = 'agreed '
/** Written by the migration that introduces agreements; see the schema of the store. */
const UPGRADE = 'agree_to_workspace'
const AGREEMENTS_MAX = 20_000

/** `keyValue` is the one of the owner `sop`. */
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

/** What an agreement is to; a file that cannot be read counts as absent. */
export const contentHash = (toml: string | null, md: string | null): string => sha256Hex(JSON.stringify([toml, md]))
