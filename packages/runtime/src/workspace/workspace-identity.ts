/** The files of a workspace that say who its agent is. Tools write there, so only a content that an operator has accepted counts. */
import { sha256Hex, type Workspace } from '@sluice/sdk'

/** In the order of the system prompt. */
export const IDENTITY_FILES = ['IDENTITY.md', 'SOUL.md', 'AGENTS.md'] as const
/** A longer file of a workspace is not accepted, because its end would not be read. */
export const IDENTITY_BYTES_MAX = 32 * 1024

export interface WorkspaceIdentity {
  readonly name: string
  readonly sha256: string
  /** Undefined while the content is not accepted. */
  readonly text: string | undefined
}

/** Resolves to the files that exist, can be read and are not too long. `accepted` are whole SHA-256. Never rejects. */
export async function readWorkspaceIdentity(
  workspace: Pick<Workspace, 'read'>,
  accepted: readonly string[],
): Promise<readonly WorkspaceIdentity[]> {
  const found = await Promise.all(
    IDENTITY_FILES.map(async (name) => {
      const bytes = await workspace.read(name, { bytesMax: IDENTITY_BYTES_MAX }).catch(() => undefined)
      if (!bytes) return []
      // The bytes that are hashed are the bytes that are used.
      const sha256 = sha256Hex(bytes)
      return { name, sha256, text: accepted.includes(sha256) ? new TextDecoder().decode(bytes).trim() : undefined }
    }),
  )
  return found.flat()
}
