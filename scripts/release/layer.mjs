// Packs a folder as a layer of a container image. Two packs of the same files are equal.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Header } from 'tar'
import { sha256 } from './oci-layout.mjs'

const BLOCK_BYTES = 512

/** Returns the paths below a folder, each folder before its contents, in the order of their names. */
const pathsBelow = (folder, path = '') =>
  readdirSync(join(folder, path), { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const own = path === '' ? entry.name : `${path}/${entry.name}`
      return entry.isDirectory() ? [own, ...pathsBelow(folder, own)] : [own]
    })

function blocksOf(folder, path, { owner, mtime }) {
  const stat = statSync(join(folder, path))
  const isFolder = stat.isDirectory()
  const data = isFolder ? Buffer.alloc(0) : readFileSync(join(folder, path))
  const header = new Header({
    path: isFolder ? `${path}/` : path,
    type: isFolder ? 'Directory' : 'File',
    // Permissions of the machine that packs do not count: everyone may read the program, and only its owner the data.
    mode: (owner.uid === 0 ? 0o777 : 0o700) & (isFolder || stat.mode & 0o100 ? 0o755 : 0o644),
    uid: owner.uid,
    gid: owner.gid,
    size: data.length,
    mtime,
  })
  const block = Buffer.alloc(BLOCK_BYTES)
  if (header.encode(block)) throw new Error(`the path ${path} is too long for a layer`)
  return [block, data, Buffer.alloc((BLOCK_BYTES - (data.length % BLOCK_BYTES)) % BLOCK_BYTES)]
}

/**
 * Returns the layer: its compressed `blob`, and `diffId`, the digest of its uncompressed form. `ownerOf` returns `{ uid, gid }` of a path,
 * and `mtime` is the time of every file.
 */
export function packLayer(folder, { ownerOf, mtime }) {
  const blocks = pathsBelow(folder).flatMap((path) => blocksOf(folder, path, { owner: ownerOf(path), mtime }))
  const bytes = Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)])
  return { blob: gzipSync(bytes, { level: 9 }), diffId: sha256(bytes) }
}
