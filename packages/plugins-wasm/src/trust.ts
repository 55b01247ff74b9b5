/** Who stands behind a plugin, and whether that is enough. */
import { createPublicKey, verify } from 'node:crypto'
import { AppError, sha256Hex } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { type Manifest, signedText } from './manifest.ts'

/** Where it came from: a page of the network, or this machine. */
export type Origin = 'url' | 'directory'
export type Trust = 'trusted' | 'unknown publisher' | 'unsigned'

/** An ed25519 key in the form the library reads: what stands before the 32 bytes is always the same. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

/**
 * Throws `forbidden`: for a module that is not the manifest's and a signature that is not the publisher's always, for what
 * is not signed by a trusted publisher where the configuration wants that.
 */
export function checkTrust(manifest: Manifest, module: Uint8Array, origin: Origin, security: PluginsConfig['security']): Trust {
  if (sha256Hex(module) !== manifest.sha256) throw new AppError('forbidden', 'the module is not the one the manifest names by its sha256')
  const trust = trustOf(manifest, security.trusted_publisher_keys)
  const mode = security.signature_mode
  const isNeeded = mode === 'required' || (mode === 'required_for_urls' && origin === 'url')
  if (!isNeeded || trust === 'trusted') return trust
  const why = trust === 'unsigned' ? 'it is not signed' : `its publisher ${manifest.publisher_key} is not in trusted_publisher_keys`
  throw new AppError('forbidden', `${why}, and [plugins.security] signature_mode is '${mode}'`)
}

function trustOf(manifest: Manifest, trustedKeys: readonly string[]): Trust {
  const { signature, publisher_key: key } = manifest
  if (signature === undefined || key === undefined) return 'unsigned'
  if (!isSigned(signedText(manifest), key, signature)) throw new AppError('forbidden', 'the signature is not valid')
  return trustedKeys.includes(key) ? 'trusted' : 'unknown publisher'
}

function isSigned(text: string, key: string, signature: string): boolean {
  try {
    const publicKey = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, Buffer.from(key, 'hex')]), format: 'der', type: 'spki' })
    return verify(null, Buffer.from(text), publicKey, Buffer.from(signature, 'base64url'))
  } catch {
    // no point of the curve
    return false
  }
}
