// Makes the container image of a release without a container engine: a layer with a build on top of a base image with Node, for every
// platform of the base, as an OCI image layout. The same build on the same base gives the same digest.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { runConfig } from './dockerfile.mjs'
import { imageFiles } from './image-files.mjs'
import { packLayer } from './layer.mjs'
import { imagesOf, readBlob, readJsonBlob, sha256, TYPES, writeBlob, writeJsonBlob, writeLayout } from './oci-layout.mjs'

const ROOT = join(import.meta.dirname, '../..')

const UNPACK = { gzip: gunzipSync, zstd: zstdDecompressSync }

const nameOf = (setting) => setting.slice(0, setting.indexOf('='))
/** Adds variables to the variables of the base. A variable replaces one with the same name. */
const withEnv = (base = [], own = []) => [...base.filter((each) => !own.some((other) => nameOf(other) === nameOf(each))), ...own]

function ownLayer(build, { run, createdAtMs }) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-image-'))
  try {
    imageFiles(build, folder)
    const [uid, gid] = run.User.split(':').map(Number)
    const [data] = Object.keys(run.Volumes).map((path) => path.slice(1))
    const ownerOf = (path) => (path === data || path.startsWith(`${data}/`) ? { uid, gid } : { uid: 0, gid: 0 })
    return packLayer(folder, { ownerOf, mtime: new Date(createdAtMs) })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Adds the layer to one image of the base. Returns the descriptor of the new image. */
function addLayer({ base, folder, descriptor, layer, run, created, annotations }) {
  const manifest = readJsonBlob(base, descriptor)
  const config = readJsonBlob(base, manifest.config)
  const layers = manifest.layers.map(({ mediaType, ...each }) => writeBlob(folder, mediaType, readBlob(base, each)))
  const made = {
    ...config,
    created,
    config: { ...config.config, ...run, Env: withEnv(config.config?.Env, run.Env) },
    rootfs: { type: 'layers', diff_ids: [...config.rootfs.diff_ids, layer.diffId] },
    history: [...(config.history ?? []), { created, created_by: 'pnpm release' }],
  }
  const image = {
    schemaVersion: 2,
    mediaType: TYPES.manifest,
    config: writeJsonBlob(folder, TYPES.config, made),
    layers: [...layers, writeBlob(folder, TYPES.layer, layer.blob)],
    annotations: { ...annotations, 'org.opencontainers.image.base.digest': descriptor.digest },
  }
  const { os, architecture, variant } = config
  return { ...writeJsonBlob(folder, TYPES.manifest, image), platform: { architecture, os, ...(variant && { variant }) } }
}

/**
 * Writes the image of the `build` on the base image in the layout `base` into the new layout `folder`. Returns its digest and its
 * platforms, such as `linux/amd64`. Throws when the base is damaged or of another format.
 */
export function makeImage({ base, build, folder, version, revision, createdAtMs }) {
  const run = runConfig(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))
  const created = new Date(createdAtMs).toISOString()
  const annotations = {
    'org.opencontainers.image.title': 'Sluice',
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.revision': revision,
    'org.opencontainers.image.licenses': 'MIT',
    'org.opencontainers.image.created': created,
  }
  const layer = ownLayer(build, { run, createdAtMs })
  const manifests = imagesOf(base).map((descriptor) => addLayer({ base, folder, descriptor, layer, run, created, annotations }))
  const index = writeJsonBlob(folder, TYPES.index, { schemaVersion: 2, mediaType: TYPES.index, manifests, annotations })
  writeLayout(folder, index, version)
  return { digest: index.digest, platforms: manifests.map(({ platform }) => `${platform.os}/${platform.architecture}`) }
}

/** Reads the image once more from the disk. Throws when a blob differs from its digest, or when a layer differs from the configuration. */
export function checkImage(folder, digest) {
  const { manifests } = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'))
  if (manifests[0].digest !== digest) throw new Error(`${folder} has the image ${manifests[0].digest} instead of ${digest}`)
  for (const descriptor of imagesOf(folder)) {
    const { config, layers } = readJsonBlob(folder, descriptor)
    const { rootfs } = readJsonBlob(folder, config)
    if (rootfs.diff_ids.length !== layers.length) throw new Error(`the image ${descriptor.digest} has other layers than its configuration`)
    for (const [at, layer] of layers.entries()) {
      const [, compression] = /\+(gzip|zstd)$/.exec(layer.mediaType) ?? []
      const bytes = readBlob(folder, layer)
      const unpacked = compression === undefined ? bytes : UNPACK[compression](bytes)
      if (sha256(unpacked) !== rootfs.diff_ids[at]) throw new Error(`the layer ${layer.digest} is another one than its configuration names`)
    }
  }
}
