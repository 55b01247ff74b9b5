/**
 * Signs rows of a shared database with the key file, and verifies that a machine with the same file has written them. The HMAC has a key of its own, which is
 * derived from the one for secrets, so that neither use says anything about the other.
 */
import { hkdfSync } from 'node:crypto'
import { join } from 'node:path'
import { equalDigests, hmacSha256, type RowSigner, type SignedRows } from '@sluice/sdk'
import { openRecordFile } from './record-file.ts'
import { openKeyFile } from './secret-box.ts'
import type { SecretKey } from './secret-key.ts'

const PURPOSE = 'sluice: rows of a shared database, version 1'
/** `<key id>:<base64url of the HMAC>` */
const FORM = /^([0-9a-f]{8}):([A-Za-z0-9_-]{43})$/
const RECORD = 'signed-rows.json'

/** `dir` is the data directory. The file in it with the state of the database that this machine has seen is `signed-rows.json`. */
export function openRowSigner(dir: string): RowSigner {
  const file = openKeyFile(dir)
  const record = openRecordFile(join(dir, RECORD))
  const derived = new Map<string, Buffer>()

  const hmacOf = ({ id, bytes }: SecretKey, text: string): Buffer => {
    const key = derived.get(id) ?? Buffer.from(hkdfSync('sha256', bytes, '', PURPOSE, 32))
    derived.set(id, key)
    return hmacSha256(key, text)
  }

  const remembered = (database: string): SignedRows | undefined => {
    const { at_ms: atMs, config_version: configVersion } = record.read(database) ?? {}
    return typeof atMs === 'number' && typeof configVersion === 'number' ? { atMs, configVersion } : undefined
  }

  return {
    keyId: () => file.current().id,
    sign(text) {
      const key = file.current()
      return `${key.id}:${hmacOf(key, text).toString('base64url')}`
    },
    faultOf(text, hmac) {
      const [, id = '', encoded = ''] = FORM.exec(hmac) ?? []
      const key = id === '' ? undefined : file.find(id)
      if (id !== '' && !key)
        return `its HMAC was made with the key ${id}, but ${file.path} is the key ${file.present()?.id ?? 'of nothing'}`
      const given = Buffer.from(encoded, 'base64url')
      if (key && equalDigests(given, hmacOf(key, text))) return undefined
      return 'its HMAC is wrong: it was changed or moved by a program that has no secret.key'
    },
    remembered,
    remember(database, { atMs, configVersion }) {
      const known = remembered(database)
      if (known && (known.atMs > atMs || (known.atMs === atMs && known.configVersion >= configVersion))) return
      record.write(database, { at_ms: atMs, config_version: configVersion })
    },
  }
}
