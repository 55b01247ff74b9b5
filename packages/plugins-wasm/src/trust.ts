/** Verifies a plugin's digest and signature, and applies the configured signature mode. */
import { createPublicKey, verify } from 'node:crypto'
import { AppError, sha256Hex } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { type Manifest, signedText } from './manifest.ts'

/** The source of a plugin: a URL or an archive (`url`), or a folder on this machine. */
export type Origin = 'url' | 'directory'
export type Trust = 'trusted' | 'unknown publisher' | 'unsigned'

/** The constant DER prefix of an ed25519 public key in SPKI form, before its 32 bytes. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

/**
 * Throws `forbidden` in every mode for a wrong digest or signature, and also for a plugin without the signature of a trusted
 * publisher when the mode requires one.
 */
export function checkTrust(manifest: Manifest, module: Uint8Array, origin: Origin, security: PluginsConfig['security']): Trust {
  if (sha256Hex(module) !== manifest.sha256) throw new AppError('forbidden', 'The digest of the module differs from sha256 in the manifest')
  const trust = trustOf(manifest, security.trusted_publisher_keys)
  const mode = security.signature_mode
  const isRequired = mode === 'required' || (mode === 'required_for_urls' && origin === 'url')
  if (!isRequired || trust === 'trusted') return trust
  const reason =
    trust === 'unsigned' ? 'The plugin is not signed' : `The publisher ${manifest.publisher_key} is not in trusted_publisher_keys`
  throw new AppError('forbidden', `${reason}, and [plugins.security] signature_mode is '${mode}'`)
}

function trustOf(manifest: Manifest, trustedKeys: readonly string[]): Trust {
  const { signature, publisher_key: key } = manifest
  if (signature === undefined || key === undefined) return 'unsigned'
  if (!isSigned(signedText(manifest), key, signature)) throw new AppError('forbidden', 'The signature is not valid')
  return trustedKeys.includes(key) ? 'trusted' : 'unknown publisher'
}

function isSigned(text: string, key: string, signature: string): boolean {
  try {
    const publicKey = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, Buffer.from(key, 'hex')]), format: 'der', type: 'spki' })
    return verify(null, Buffer.from(text), publicKey, Buffer.from(signature, 'base64url'))
  } catch {
    // The key is not a point of the curve.
    return false
  }
}
