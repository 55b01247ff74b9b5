// Puts the files that bundled packages read while they run, such as WebAssembly modules, next to the bundle.
import { createHash } from 'node:crypto'
import { cpSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** By the module that reads the file: the path of the file from there, as the source names it. */
const FILES = [
  // The crypto library of Matrix.
  {
    module: /[\\/]matrix-sdk-crypto-wasm[\\/]node\.mjs$/,
    path: './pkg/matrix_sdk_crypto_wasm_bg.wasm',
    name: 'matrix_sdk_crypto',
    ending: '.wasm',
  },
]
const HASH_CHARS = 10

/**
 * A plugin for esbuild that copies the files into `folder`. Their names contain a hash, like the names of the other parts of a bundle: a
 * daemon that runs while its build is replaced still loads its own.
 */
export const bundledFiles = (folder) => ({
  name: 'bundled-files',
  setup(esbuild) {
    for (const { module, path, name, ending } of FILES) {
      esbuild.onLoad({ filter: module }, async ({ path: importer }) => {
        const source = await readFile(importer, 'utf8')
        if (!source.includes(`"${path}"`)) throw new Error(`${importer} has changed; adapt scripts/bundled-files.mjs`)
        const file = join(dirname(importer), path)
        const hash = createHash('sha256')
          .update(await readFile(file))
          .digest('hex')
          .slice(0, HASH_CHARS)
        const copied = `${name}-${hash}${ending}`
        cpSync(file, join(folder, copied))
        return { contents: source.replaceAll(`"${path}"`, `"./${copied}"`), loader: 'js' }
      })
    }
  },
})
