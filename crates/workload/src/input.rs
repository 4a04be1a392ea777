//! What a prompt holds after its prefix: text, and the tokens of images, audio and video.
//!
//! A client mix draws it, all from the one stream of its request. Only the number of tokens counts:
//! no two requests are assumed to show the same image.

use crate::error::{SpecError, ensure};
use crate::length::{Length, MAX_TOKENS};
use blis_core::Dice;

/// The new tokens of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Tokens of text; `None`: there is none.
    pub text: Option<Length>,
    /// Images, audio, video.
    pub media: Vec<Media>,
}

/// Things of one kind in a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// What it is, for messages: `image`, `audio` or `video`.
    pub kind: &'static str,
    /// How many there are; may be 0, and is never more than 10,000.
    pub count: Length,
    /// Tokens of each.
    pub tokens: Length,
}

/// Most things of one kind in a prompt: a draw from a heavy tail must not take all day.
const MOST_THINGS: u32 = 10_000;

impl From<Length> for Input {
    fn from(text: Length) -> Input {
        Input { text: Some(text), media: Vec::new() }
    }
}

impl Input {
    /// Checks every length; the error's field is relative to the input, e.g. `text.mean`.
    ///
    /// # Errors
    /// If a parameter is illegal, or there is neither text nor media.
    pub fn validate(&self) -> Result<(), SpecError> {
        let something = self.text.is_some() || !self.media.is_empty();
        ensure(something, "", "neither text nor media", || "at least one of them")?;
        if let Some(text) = &self.text {
            text.validate().map_err(|error| error.under("text"))?;
        }
        for Media { kind, count, tokens } in &self.media {
            count.validate_from(0).map_err(|error| error.under(&format!("{kind}_count")))?;
            tokens.validate().map_err(|error| error.under(kind))?;
        }
        Ok(())
    }

    /// Draws how many tokens there are (1..=[`MAX_TOKENS`]).
    pub fn sample(&self, dice: &mut Dice) -> u32 {
        let mut tokens = match &self.text {
            Some(text) => text.sample(dice),
            None => 0,
        };
        for media in &self.media {
            let count = media.count.sample(dice).min(MOST_THINGS);
            for _ in 0..count {
                tokens = tokens.saturating_add(media.tokens.sample(dice));
            }
        }
        tokens.clamp(1, MAX_TOKENS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::length::Empirical;
    use blis_core::random::Purpose;

    fn images(count: Length, tokens: u32) -> Media {
        Media { kind: "image", count, tokens: Length::Constant(tokens) }
    }

    #[test]
    fn text_and_things_add_up() {
        let mut input = Input::from(Length::Constant(100));
        input.media.push(images(Length::Constant(3), 576));
        assert_eq!(input.sample(&mut Dice::new(1, Purpose::InputLength, 0)), 100 + 3 * 576);
    }

    #[test]
    fn some_prompts_have_no_image_and_none_is_empty() {
        let count = Empirical::counts([(0, 0.7), (1, 0.3)]).unwrap();
        let media = vec![images(Length::Empirical(count), 576)];
        let input = Input { text: None, media };
        input.validate().unwrap();
        let draws: Vec<u32> = (0..2_000)
            .map(|key| input.sample(&mut Dice::new(1, Purpose::InputLength, key)))
            .collect();
        let with_image = draws.iter().filter(|&&tokens| tokens == 576).count();
        assert!((500..700).contains(&with_image), "{with_image} of 2000, not 600");
        assert!(draws.iter().all(|&tokens| tokens == 576 || tokens == 1));
    }

    #[test]
    fn an_input_of_nothing_and_illegal_lengths_are_refused() {
        let nothing = Input { text: None, media: Vec::new() };
        let text = nothing.validate().expect_err("nothing").to_string();
        assert_eq!(text, "field ``: found neither text nor media; legal: at least one of them");
        let media = vec![images(Length::Constant(1), 0)];
        let error = Input { text: None, media }.validate().expect_err("no tokens");
        assert_eq!(error.field, "image.value");
    }
}
