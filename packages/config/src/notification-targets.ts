/** The names by which the configuration and the API address the people who are asked or notified. */
export const TARGETS = ['dashboard', 'community', 'workspace', 'messenger'] as const

export type NotificationTarget = (typeof TARGETS)[number]
