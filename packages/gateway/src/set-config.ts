/** Changes one key of the configuration file: read, change, validate, save, unless somebody else saved in between. */
import { readFile } from 'node:fs/promises'
import { AppError } from '@sluice/sdk'
import { openSecretBox } from '@sluice/store/secret-box'
import { setValue } from './config/edit-config.ts'
import { saveConfig } from './config/save-config.ts'
import { type ConfigSource, sectionsOf } from './read-config.ts'

/** Somebody who saves at the same time is let by so often. */
const ATTEMPTS_MAX = 10

/** `value` undefined removes the key. Resolves to whether what was set is a secret, and so was encrypted. */
export async function setConfig(source: ConfigSource, key: string, value: string | undefined): Promise<{ readonly secret: boolean }> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await setOnce(source, key, value)
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'conflict' || attempt === ATTEMPTS_MAX) throw error
    }
  }
}

async function setOnce(source: ConfigSource, key: string, value: string | undefined): Promise<{ readonly secret: boolean }> {
  const { configFile: file, dataDir, features, env } = source
  const expected = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  const box = openSecretBox(dataDir)
  const { text, secret } = await setValue({
    file,
    text: expected ?? '',
    sections: sectionsOf(features),
    env,
    path: key,
    value,
    encrypt: (plain, aad) => box.encrypt(plain, aad),
    decrypt: (encrypted, aad) => box.decrypt(encrypted, aad),
  })
  await saveConfig({ file, text, expected })
  return { secret }
}
