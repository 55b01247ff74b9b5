/** Notes in the database that every row which nodes trust has to be signed. */
import type { RowSigner, SignedRows } from '@sluice/sdk'
import { type All, metaOf } from '../connection/connection.ts'
import { readMarker, SIGNED_KEY, writeMarker } from './row-signatures.ts'
import { SIGNED_SINCE } from './schema.ts'

const PUT = 'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value'
const CONFIG_VERSION = 'SELECT coalesce(max(version), 0)::bigint AS version FROM config'

/**
 * Makes every node refuse rows without an HMAC, and the database refuse releases that write none. The newest version of the configuration
 * is the oldest allowed one from now on. `seen` is what this machine remembers.
 */
export async function demandSignatures(all: All, signer: RowSigner, nowMs: number, seen?: SignedRows): Promise<void> {
  const meta = await metaOf(all)
  const marker = meta.get(SIGNED_KEY)
  const last = marker === undefined ? undefined : readMarker(marker, signer)
  // Later than any earlier time, also after the clock was set back.
  const atMs = Math.max(nowMs, (last?.atMs ?? 0) + 1, (seen?.atMs ?? 0) + 1)
  const configVersion = Number((await all(CONFIG_VERSION))[0]?.version ?? 0)
  await all(PUT, SIGNED_KEY, writeMarker({ atMs, configVersion }, signer))
  await all(PUT, 'min_reader', String(Math.max(SIGNED_SINCE, Number(meta.get('min_reader') ?? 0))))
}
