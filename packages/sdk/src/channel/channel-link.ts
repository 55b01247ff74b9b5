/** The port of channels that work as another device of an account: a person confirms the device on a phone. */

/** A QR code: its content, and its modules for everything that draws. */
export interface QrCode {
  readonly text: string
  /** One text for each row, with `1` for a dark module and `0` for a light one, without a margin. */
  readonly rows: readonly string[]
}

export type LinkStatus =
  /** `reason` says why linking failed, or why the device lost its link. */
  | { readonly state: 'unlinked'; readonly reason?: string }
  /**
   * A person confirms the device by scanning `qr` or typing `code`, which change every minute or so. Neither is there until the platform
   * has given one.
   */
  | { readonly state: 'linking'; readonly qr?: QrCode; readonly code?: string }
  | { readonly state: 'linked'; readonly account: string }

export interface ChannelLink {
  /** Makes no request to the platform. */
  status(): Promise<LinkStatus>
  /**
   * Begins to link, with a code for the account of this telephone number or with a QR code, and resolves at once: `status` shows the
   * progress. Replaces an attempt that runs. Throws `conflict` while a device is linked, and `invalid_request` for an impossible number.
   */
  start(options: { readonly phone?: string }): Promise<LinkStatus>
  /** Removes the device from the account, or ends an attempt to link. Its keys are deleted even if the platform cannot be reached. */
  unlink(signal: AbortSignal): Promise<void>
}
