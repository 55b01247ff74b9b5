/** How a reply with bold words, code or links reaches a platform: as plain text with a separate list of the styles of its parts. */

/** `quote` and `pre` (a block of code) cover whole lines. */
export type StyleKind = 'bold' | 'italic' | 'strike' | 'code' | 'pre' | 'quote' | 'link'

/** A part of a text and how it looks. The parts of one text contain each other or are apart; they never overlap otherwise. */
export interface TextStyle {
  readonly kind: StyleKind
  /** The first UTF-16 unit, and the one after the last. */
  readonly from: number
  readonly to: number
  /** The address of a link, or the language of a block of code. */
  readonly value?: string
}

export interface StyledText {
  readonly text: string
  /** In the order of `from`; of two that begin together, the longer one comes first. */
  readonly styles: readonly TextStyle[]
}

/** The formatting that a platform shows. */
export interface Markup {
  /** The styles that reach the channel. The text is complete without the others: a link that is not shown is written as `words (address)`. */
  readonly shows: readonly StyleKind[]
  /** The text is spoken: addresses and bullets are left out. */
  readonly spoken?: true
  /**
   * Writes the styles into the text, as the platform's own marks, and escapes what the platform would read as marks. Its result is what
   * `Channel.limits` counts. Absent where the platform takes styles apart from the text.
   */
  write?(styled: StyledText): string
}
