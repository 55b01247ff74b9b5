/** The incompatible changes since the last recorded release that its users were warned of, or that security demands. */
import type { Surface } from './surfaces.ts'

export interface Accepted {
  readonly surface: Surface
  /** The item of the finding. */
  readonly item: string
  /** Why this could not stay, for the reader of the release notes. */
  readonly reason: string
  /** The recorded release whose program or notes warned; `security` for what could not wait for a warning. */
  readonly warnedIn: string
}

export const ACCEPTED: readonly Accepted[] = []
