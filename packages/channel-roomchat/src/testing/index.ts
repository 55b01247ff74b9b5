/** The fake of roomchat on loopback, for tests of this package and of the whole product. */
export {
  ROOMCHAT_APP_TOKEN,
  ROOMCHAT_SECRET,
  type RoomchatCredentials,
  type RoomchatFake,
  type RoomchatFakeOptions,
  type RoomchatSent,
  startRoomchatFake,
} from './fake.ts'
