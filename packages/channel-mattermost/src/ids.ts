/** The ids of Mattermost: 26 lower-case letters and digits. */

export const ID = /^[a-z0-9]{26}$/

export const isId = (value: unknown): value is string => typeof value === 'string' && ID.test(value)
