/** A device that was linked before the test, as the folder that another program left: see `import-session.ts`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BufferJSON, Curve, initAuthCreds } from '@whiskeysockets/baileys'
import type { Account } from './account.ts'
import type { Bundle } from './person.ts'

const PRE_KEYS = 60

export interface LinkedSession {
  readonly noiseKey: Buffer
  readonly bundle: Bundle
}

/** Writes the folder, and returns what the server knows of the device. */
export function writeLinkedSession(folder: string, account: Account, me: { readonly id: string; readonly lid: string }): LinkedSession {
  const creds = initAuthCreds()
  const preKeys = Array.from({ length: PRE_KEYS }, (_, index) => ({ keyId: index + 1, pair: Curve.generateKeyPair() }))
  const identity = account.sign(creds.signedIdentityKey.public)
  const all = {
    ...creds,
    account: identity,
    me: { ...me, name: 'Sluice' },
    accountSyncCounter: 1,
    nextPreKeyId: PRE_KEYS + 1,
    firstUnuploadedPreKeyId: PRE_KEYS + 1,
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const write = (name: string, value: unknown): void =>
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(value, BufferJSON.replacer), { mode: 0o600 })
  write('creds', all)
  for (const { keyId, pair } of preKeys) write(`pre-key-${keyId}`, pair)
  const { keyPair, keyId, signature } = creds.signedPreKey
  return {
    noiseKey: Buffer.from(creds.noiseKey.public),
    bundle: {
      registrationId: creds.registrationId,
      identity: creds.signedIdentityKey.public,
      signedPreKey: { keyId, publicKey: keyPair.public, signature },
      preKeys: preKeys.map((key) => ({ keyId: key.keyId, publicKey: key.pair.public })),
    },
  }
}
