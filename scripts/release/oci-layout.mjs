// Reads and writes the blobs of an OCI image layout: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const TYPES = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
}

/** Returns the digest of bytes, such as `sha256:…`. */
export const sha256 = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

const pathOf = (folder, digest) => {
  const [, hex] = /^sha256:([0-9a-f]{64})$/.exec(digest) ?? []
  if (hex === undefined) throw new Error(`'${digest}' is not a SHA-256 digest`)
  return join(folder, 'blobs/sha256', hex)
}

/** Returns the bytes of a descriptor. Throws when they are missing, or differ from its digest or size. */
export function readBlob(folder, { digest, size }) {
  const bytes = readFileSync(pathOf(folder, digest))
  if (bytes.length !== size || sha256(bytes) !== digest) throw new Error(`the blob ${digest} of ${folder} is damaged`)
  return bytes
}

export const readJsonBlob = (folder, descriptor) => JSON.parse(readBlob(folder, descriptor).toString('utf8'))

/** Writes bytes, and returns their descriptor. */
export function writeBlob(folder, mediaType, bytes) {
  const digest = sha256(bytes)
  mkdirSync(join(folder, 'blobs/sha256'), { recursive: true })
  writeFileSync(pathOf(folder, digest), bytes)
  return { mediaType, digest, size: bytes.length }
}

export const writeJsonBlob = (folder, mediaType, value) => writeBlob(folder, mediaType, Buffer.from(JSON.stringify(value)))

/** Writes the files that make a folder of blobs a layout with one image. */
export function writeLayout(folder, descriptor, name) {
  writeFileSync(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  const named = { ...descriptor, annotations: { 'org.opencontainers.image.ref.name': name } }
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType: TYPES.index, manifests: [named] }))
}

/**
 * Returns the descriptors of the images of a layout, one for each platform. Throws when the layout has several images, or images of
 * another format.
 */
export function imagesOf(folder) {
  const { manifests } = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'))
  if (manifests.length !== 1) throw new Error(`${folder} has ${manifests.length} images; it needs exactly one`)
  const [only] = manifests
  // Skips attestations: they have the platform `unknown` and contain no image.
  const found =
    only.mediaType === TYPES.index ? readJsonBlob(folder, only).manifests.filter(({ platform }) => platform?.os !== 'unknown') : [only]
  const other = found.find(({ mediaType }) => mediaType !== TYPES.manifest)
  if (other) throw new Error(`${folder} has an image of the type ${other.mediaType}; copy it with 'skopeo copy --all --format oci'`)
  return found
}
