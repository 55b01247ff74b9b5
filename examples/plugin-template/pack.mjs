// Writes dist/manifest.json for the module in dist/. With `--sign`, also signs it with the private key in publisher.pem, which is
// created if it does not exist. Keep that file secret.
import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, sign } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

const folder = import.meta.dirname
const KEY_FILE = process.env.PUBLISHER_KEY_FILE ?? `${folder}/publisher.pem`
/** Returns the 32 bytes of the public key, which are the last ones of its DER form. */
const rawKey = (privateKey) => createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32)

function publisherKey() {
  if (!existsSync(KEY_FILE)) {
    const pem = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })
    writeFileSync(KEY_FILE, pem, { mode: 0o600 })
  }
  return createPrivateKey(readFileSync(KEY_FILE))
}

const { name, version, description, permissions = [] } = JSON.parse(readFileSync(`${folder}/manifest.json`, 'utf8'))
const wasm_path = 'plugin.wasm'
const sha256 = hash('sha256', readFileSync(`${folder}/dist/${wasm_path}`), 'hex')
const manifest = { name, version, description, wasm_path, permissions, sha256 }
if (process.argv.includes('--sign')) {
  const key = publisherKey()
  manifest.publisher_key = rawKey(key).toString('hex')
  const signed = JSON.stringify(['sluice-plugin/1', name, version, description, wasm_path, permissions, sha256, manifest.publisher_key])
  manifest.signature = sign(null, Buffer.from(signed), key).toString('base64url')
}
writeFileSync(`${folder}/dist/manifest.json`, `${JSON.stringify(manifest, null, 2)}\n`)
process.stdout.write(`dist/manifest.json: ${name} ${version}${manifest.publisher_key ? `, signed by ${manifest.publisher_key}` : ''}\n`)
