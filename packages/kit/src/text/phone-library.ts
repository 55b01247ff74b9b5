/** Re-exports the one function of the library that is used and its data, so that a bundle leaves out the others. */
export { parsePhoneNumberFromString } from 'libphonenumber-js/core'
export { default as metadata } from 'libphonenumber-js/metadata.min.json'
