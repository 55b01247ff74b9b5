/** Notes in the database that every row which nodes trust has to be signed. */
import type { RowSigner, SignedRows } from '@sluice/sdk'
import { type All, metaOf, PUT_META } from '../connection/connection.ts'
import { readMarker, SIGNED_KEY, writeMarker } from './row-signatures.ts'
import { SIGNED_SINCE } from './schema.ts'
import { newestVersion } from './signed-tables.ts'

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
  const configVersion = await newestVersion(all)
  await all(PUT_META, SIGNED_KEY, writeMarker({ atMs, configVersion }, signer))
  await all(PUT_META, 'min_reader', String(Math.max(SIGNED_SINCE, Number(meta.get('min_reader') ?? 0))))
}
