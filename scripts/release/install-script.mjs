// Makes the script `get-sluice.sh` of a release, which downloads, checks and installs it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const INSTALL_SCRIPT = 'get-sluice.sh'

/**
 * Returns the script. `downloads` is the address of the folder with the files of the release; with an empty one, the script asks for
 * SLUICE_DOWNLOADS. `publicKey` is the key in PEM that verifies the checksums.
 */
export function installScript({ version, downloads, publicKey }) {
  const values = { VERSION: version, DOWNLOADS: downloads, PUBLIC_KEY: publicKey.trim() }
  const template = readFileSync(join(import.meta.dirname, INSTALL_SCRIPT), 'utf8')
  return template.replaceAll(/@([A-Z_]+)@/g, (_, name) => {
    if (/['\\]/.test(values[name])) throw new Error(`${name} cannot be quoted in a shell script: ${values[name]}`)
    return values[name]
  })
}
