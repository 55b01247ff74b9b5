/** Reads the files that say who an agent is: those in `agents/<name>/` of the data directory, and the accepted ones of its workspace. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { IDENTITY_BYTES_MAX, IDENTITY_FILES, readWorkspaceIdentity } from '@sluice/runtime'
import type { Logger, Workspace } from '@sluice/sdk'

export interface IdentityOf {
  readonly dataDir: string
  readonly agent: string
  /** Absent for an agent that is not configured. */
  readonly workspace?: Pick<Workspace, 'read'> | undefined
  /** The whole SHA-256 of the files of the workspace that an operator has accepted. */
  readonly accepted?: readonly string[] | undefined
}

/** Resolves to the texts that exist, joined. No tool and no sandbox writes to the folder of the data directory. Never rejects. */
export async function readIdentity({ dataDir, agent, workspace, accepted = [] }: IdentityOf, log: Logger): Promise<string> {
  const own = await Promise.all(IDENTITY_FILES.map((name) => readText(join(dataDir, 'agents', agent, name), log)))
  const further = workspace && accepted.length > 0 ? await readWorkspaceIdentity(workspace, accepted) : []
  return [...own, ...further.map(({ text = '' }) => text)].filter((text) => text !== '').join('\n\n')
}

/** The rest of a longer file is not read. */
async function readText(path: string, log: Logger): Promise<string> {
  try {
    await using file = await open(path)
    const { bytesRead, buffer } = await file.read(Buffer.alloc(IDENTITY_BYTES_MAX), 0, IDENTITY_BYTES_MAX, 0)
    const { size } = await file.stat()
    if (size > bytesRead) log.warn('only the beginning of an identity file is read', { path, bytes: size, read: bytesRead })
    return new TextDecoder().decode(buffer.subarray(0, bytesRead)).trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') log.warn('identity file not read', { path, error })
    return ''
  }
}
