/** The interface to a chip's debug port. There is one implementation for each way to reach it. */

/** A block of memory that is read in words. Address and length are multiples of the width. */
export interface Block {
  readonly address: number
  /** In bytes. */
  readonly length: number
  /** The bytes of one access. Registers only support their own width. */
  readonly width: 2 | 4
}

/** The bytes of a block in order; undefined when the chip refuses to read it. */
export type Reading = Uint8Array | undefined

export interface ChipReader {
  /** Names the server or program for operators. */
  readonly source: string
  /**
   * Reads all blocks in one connection and leaves the chip in the state it was in. Throws `unavailable` when no server or probe
   * answers, `upstream` when it sends an invalid answer, `upstream_timeout` and `aborted`.
   */
  read(blocks: readonly Block[], signal: AbortSignal): Promise<readonly Reading[]>
}
