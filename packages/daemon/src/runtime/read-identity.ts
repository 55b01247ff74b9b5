/** Reads the files that say who an agent is: `AGENTS.md`, `SOUL.md` and `IDENTITY.md` in `agents/<name>/` of the data directory. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '@sluice/sdk'

const FILES = ['IDENTITY.md', 'SOUL.md', 'AGENTS.md']
/** The rest of a longer file is not read. */
const FILE_BYTES_MAX = 32 * 1024

/** Resolves to the texts that exist, joined. No tool and no sandbox writes to this folder. Never rejects. */
export async function readIdentity(dataDir: string, agent: string, log: Logger): Promise<string> {
  const texts = await Promise.all(FILES.map((name) => readText(join(dataDir, 'agents', agent, name), log)))
  return texts.filter((text) => text !== '').join('\n\n')
}

async function readText(path: string, log: Logger): Promise<string> {
  try {
    await using file = await open(path)
    const { bytesRead, buffer } = await file.read(Buffer.alloc(FILE_BYTES_MAX), 0, FILE_BYTES_MAX, 0)
    return new TextDecoder().decode(buffer.subarray(0, bytesRead)).trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') log.warn('identity file not read', { path, error })
    return ''
  }
}
