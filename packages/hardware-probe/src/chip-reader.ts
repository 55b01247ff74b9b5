/** The port to a chip's debug port: one visit that reads what is asked for and leaves the chip as it was. */
/** A piece of memory, read as words: both numbers are multiples of the width. */
export interface Block {
  readonly address: number
  /** Bytes. */
  readonly length: number
  /** Bytes of one access; registers take only their own. */
  readonly width: 2 | 4
}

/** Its bytes, in order; undefined: the chip refuses to give them. */
export type Reading = Uint8Array | undefined

export interface ChipReader {
  /** Where readings come from, for people. */
  readonly source: string
  /**
   * Reads all blocks in one visit. Throws `unavailable` where no server or probe answers, `upstream` for one that talks
   * nonsense, `upstream_timeout` and `aborted`.
   */
  read(blocks: readonly Block[], signal: AbortSignal): Promise<readonly Reading[]>
}
