/** Makes plugins for tests: a manifest that matches its module, with or without a signature. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { mkdir, mkdtemp, realpath, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sha256Hex } from '@sluice/sdk'
import { parseManifest, signedText } from '../manifest.ts'

export interface Publisher {
  readonly key: string
  readonly privateKey: KeyObject
}

export function newPublisher(): Publisher {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return { key: publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex'), privateKey }
}

/** Returns the content of the manifest file. `changes` override members and are covered by the signature. */
export function manifestFor(
  module: Uint8Array,
  changes: Readonly<Record<string, unknown>> = {},
  publisher?: Publisher,
): Record<string, unknown> {
  const plain = { name: 'echo', version: '1.0.0', description: 'Returns its input.', sha256: sha256Hex(module), ...changes }
  if (!publisher) return plain
  const keyed = { ...plain, publisher_key: publisher.key }
  const text = signedText({ ...parseManifest(Buffer.from(JSON.stringify({ ...keyed, signature: 'A'.repeat(86) }))) })
  return { ...keyed, signature: sign(null, Buffer.from(text), publisher.privateKey).toString('base64url') }
}

/** Creates a temporary folder, which the caller removes. */
export const newFolder = async (): Promise<string> => realpath(await mkdtemp(join(tmpdir(), 'sluice-plugins-')))

/** Writes the manifest and the module, and returns the folder. */
export async function writePlugin(folder: string, manifest: unknown, module: Uint8Array): Promise<string> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'plugin.wasm'), module)
  return folder
}
