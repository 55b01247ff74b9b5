/** True for what can be the token of a room: it stands in addresses as it is. */
export const isRoom = (token: string): boolean => /^[\w-]{1,100}$/.test(token)
