/** A small base image, in place of one that would have to be pulled. */
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { ROOT } from '../daemons/bundle.ts'

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}
interface LayoutModule {
  readonly TYPES: Readonly<Record<'index' | 'manifest' | 'config' | 'layer', string>>
  sha256(bytes: Uint8Array): string
  writeBlob(folder: string, type: string, bytes: Uint8Array): Descriptor
  writeJsonBlob(folder: string, type: string, value: unknown): Descriptor
  writeLayout(folder: string, descriptor: Descriptor, name: string): void
}
const { TYPES, writeBlob, sha256, writeJsonBlob, writeLayout } = (await import(
  join(ROOT, 'scripts/release/oci-layout.mjs')
)) as LayoutModule
const PLATFORMS = ['amd64', 'arm64'] as const

/** Writes a layout with an image of two platforms, whose only layer is empty. */
export function writeBase(folder: string): void {
  const tar = Buffer.alloc(1024)
  const layer = writeBlob(folder, TYPES.layer, gzipSync(tar))
  const manifests = PLATFORMS.map((architecture) => {
    const config = writeJsonBlob(folder, TYPES.config, {
      architecture,
      os: 'linux',
      config: { Env: ['PATH=/usr/local/bin:/usr/bin', 'HOME=/root'], Cmd: ['node'] },
      rootfs: { type: 'layers', diff_ids: [sha256(tar)] },
    })
    const manifest = { schemaVersion: 2, mediaType: TYPES.manifest, config, layers: [layer] }
    return { ...writeJsonBlob(folder, TYPES.manifest, manifest), platform: { architecture, os: 'linux' } }
  })
  const index = { schemaVersion: 2, mediaType: TYPES.index, manifests }
  writeLayout(folder, writeJsonBlob(folder, TYPES.index, index), 'node')
}

export { sha256, writeJsonBlob, writeLayout }
